"""Rows and rules of the video document, and the readings of it, with their tests: section -> (text, tests)."""

from collections.abc import Mapping

Rows = tuple[tuple[str, ...], ...]

OVERVIEW: Rows = (
    ("a task is submitted, polled, and its video read", "test_videos_a_task_is_submitted_polled_and_read"),
    ("unified entry: submit and query", "test_videos_unified_submit_response"),
    ("video-object entry: submit, remix, query", "test_videos_video_object_of_a_new_task", "test_videos_remix"),
    ("Entry D: submit and query", "test_videos_entry_d_objects"),
    ("Entry E v1: submit and query, text2video and image2video", "test_videos_entry_e_v1_objects"),
    ("Entry E 3.0: submit on three paths, query", "test_videos_entry_e_3_objects"),
    ("Entry F: submit and query by the action", "test_videos_entry_f_objects"),
    ("Entry G: submit and query", "test_videos_entry_g_objects"),
    ("content of tasks of all entries", "test_videos_a_task_is_submitted_polled_and_read"),
    ("every operation needs a key", "test_videos_every_operation_needs_a_key"),
    ("models are listed", "test_videos_every_model_is_in_the_model_list"),
    ("submit paths with and without a slash at the end", "test_videos_paths_with_a_slash_at_the_end"),
)

OBJECTS: Rows = (
    ("unified submit response: task_id, status queued, format mp4", "test_videos_unified_submit_response"),
    ("unified task: url on success", "test_videos_unified_task_on_success"),
    ("unified task: error with an integer code, fail_reason", "test_videos_unified_task_on_failure"),
    (
        "video object: id, task_id, object, model, status, progress, created_at, seconds, size",
        "test_videos_video_object_of_a_new_task",
    ),
    ("video object: completed_at, expires_at", "test_videos_video_object_of_a_finished_task"),
    ("video object: progress 0-100", "test_videos_progress_never_falls"),
    ("video object: remixed_from_video_id", "test_videos_remix"),
    ("video object: error", "test_videos_video_object_of_a_failed_task"),
    ("Entry D: id; status, content.video_url, created_at, updated_at", "test_videos_entry_d_objects"),
    ("Entry D: error with code task_failed", "test_videos_entry_d_failure"),
    ("Entry E v1: submit response in the shape of a video object", "test_videos_entry_e_v1_objects"),
    (
        "Entry E 3.0: code, message, request_id, data, times in milliseconds, outputs",
        "test_videos_entry_e_3_objects",
    ),
    ("Entry E 3.0: error of a failed item", "test_videos_entry_e_3_failure"),
    ("Entry F: code 10000, data", "test_videos_entry_f_objects"),
    ("Entry G: task_id; task with content.url and integer times", "test_videos_entry_g_objects"),
)

MODELS: Rows = (
    ("every model in its entry", "test_videos_every_model_is_accepted_in_its_entry"),
    ("no model in another entry", "test_videos_a_model_of_another_entry_is_refused"),
)

STATES: Rows = (
    ("unified, video-object, D, E v1, E 3.0, F, G", "test_videos_states_of_every_entry"),
    ("failed", "test_videos_failed_states"),
)

UNIFIED: Rows = (
    ("model, prompt", "test_videos_unified_model_and_prompt"),
    ("image, images", "test_videos_unified_image_and_images"),
    ("metadata", "test_videos_unified_metadata_is_passed_through"),
    ("family A: seconds", "test_videos_family_a_seconds"),
    ("family A: size", "test_videos_family_a_size"),
    ("family A: input_reference, also in a form", "test_videos_family_a_input_reference"),
    ("family B: duration, durationSeconds", "test_videos_family_b_duration"),
    ("family B: aspectRatio", "test_videos_family_b_aspect_ratio"),
    ("family B: resolution", "test_videos_family_b_resolution"),
    ("family B: image, lastFrame only on 3.1", "test_videos_family_b_frames"),
    ("family B: generateAudio, ignored by fast models", "test_videos_family_b_generate_audio"),
    ("family B: seed", "test_videos_family_b_seed"),
    ("family B: sampleCount", "test_videos_family_b_sample_count", "test_videos_several_videos_are_all_returned"),
    ("family B: personGeneration, addWatermark, fps", "test_videos_family_b_other_fields"),
    ("family C: duration", "test_videos_family_c_duration"),
    ("family C: size, text-to-video only", "test_videos_family_c_size"),
    ("family C: resolution", "test_videos_family_c_resolution"),
    ("family C: generate_audio, seed", "test_videos_family_c_generate_audio_and_seed"),
    ("family C: image-to-video", "test_videos_family_c_images"),
    ("family D 1.x: metadata.content, roles", "test_videos_family_d_1_content"),
    (
        "family D 1.x: markers",
        "test_videos_family_d_1_markers",
        "test_videos_family_d_1_unknown_markers_and_the_default_length",
    ),
    ("family D 1.x: return_last_frame, callback_url", "test_videos_family_d_1_metadata"),
)

VIDEO_OBJECT: Rows = (
    ("model, prompt, seconds, size, input_reference", "test_videos_video_object_fields"),
    ("multipart/form-data, the file as input_reference or image", "test_videos_video_object_form"),
    ("remix: model, prompt required", "test_videos_remix", "test_videos_remix_needs_a_prompt_and_a_finished_source"),
    ("list and removal, as the SDK calls them", "test_videos_list_and_removal"),
)

CONTENT: Rows = (
    ("video/mp4, Cache-Control", "test_videos_content_headers"),
    ("ranges and conditions", "test_videos_content_ranges"),
    ("not finished: an error naming the state", "test_videos_content_of_an_unfinished_task"),
    ("failed, unknown: 404", "test_videos_content_of_a_failed_and_of_an_unknown_task"),
    ("variants", "test_videos_content_variants", "test_videos_entry_d_last_frame"),
)

ENTRY_D: Rows = (
    (
        "resolution, ratio, duration, generate_audio, return_last_frame, seed, watermark, camera_fixed, frames",
        "test_videos_entry_d_fields",
        "test_videos_entry_d_wrong_values",
    ),
    ("content: text, image_url, video_url, audio_url, asset://", "test_videos_entry_d_content_items"),
    ("roles and their aliases, first and last frame", "test_videos_entry_d_roles"),
    ("missing model; unsupported family", "test_videos_entry_d_error_model"),
    ("content without text", "test_videos_entry_d_error_text"),
    ("items without url", "test_videos_entry_d_error_urls"),
    ("last frame with a reference image", "test_videos_entry_d_error_last_frame_with_a_reference"),
    ("duration of the 2.0 models", "test_videos_entry_d_error_duration"),
    ("the fast model has no 1080p", "test_videos_entry_d_error_fast_model"),
    ("ModelNotOpen", "test_videos_entry_d_error_model_not_open"),
)

ENTRY_E: Rows = (
    ("v1: model, prompt, duration, size, mode", "test_videos_entry_e_v1_fields"),
    ("v1: image, images, multipart", "test_videos_entry_e_v1_images"),
    ("v1: metadata", "test_videos_entry_e_v1_metadata"),
    ("3.0: prompt, image, duration, resolution", "test_videos_entry_e_3_fields"),
    ("3.0: unknown fields", "test_videos_entry_e_3_unknown_fields_are_passed_through"),
    ("3.0: options.external_task_id", "test_videos_entry_e_3_external_task_id", "test_videos_an_external_id_is_unique"),
    ("3.0: options.callback_url", "test_videos_entry_e_3_callback_url"),
    ("omni: limits of inputs", "test_videos_entry_e_3_omni_limits"),
    ("query: one task, by either id", "test_videos_entry_e_3_query_by_either_id"),
)

ENTRIES_F_AND_G: Rows = (
    ("F: Action, Version", "test_videos_entry_f_action_and_version"),
    ("F: req_key, prompt, images, seed, aspect_ratio, frames", "test_videos_entry_f_fields"),
    ("F: query with req_key and task_id", "test_videos_entry_f_query_names_its_model"),
    ("G: model, resolution, duration, ratio, aigc_watermark", "test_videos_entry_g_fields"),
    ("G: content and roles", "test_videos_entry_g_content"),
    ("G: callback_url", "test_videos_entry_g_callback_url_is_refused_in_any_form"),
)

EVENTS: Rows = (
    ("the receiver needs no key, its signature is checked", "test_videos_callback_path_needs_no_key"),
    ("acknowledged with code 0", "test_videos_callback_is_acknowledged"),
    ("at most 1 MiB", "test_videos_callback_path_needs_no_key"),
)

READINGS: Rows = (
    ("1: fields of other families", "test_videos_fields_of_other_families_are_refused"),
    ("3: error bodies", "test_videos_error_bodies_of_every_entry"),
    ("4: unknown models", "test_videos_an_unknown_model_is_404_with_its_id"),
    ("4: unknown tasks", "test_videos_unknown_tasks_are_404"),
    ("17: urls, index", "test_videos_several_videos_are_all_returned"),
    (
        "18: length, size and sound of the file",
        "test_videos_have_the_requested_length_size_and_sound",
        "test_videos_family_d_1_without_audio",
    ),
    ("26: addresses are never fetched", "test_videos_a_data_url_is_used_and_an_address_is_never_fetched"),
    ("a task is read in its own entry", "test_videos_a_task_is_read_by_its_own_entry_alone"),
    ("another caller's task is unknown", "test_videos_another_key_has_no_tasks_of_this_one"),
    ("repetitions are one task", "test_videos_idempotency_key", "test_videos_repetition_of_an_sdk"),
    ("hints of the next query", "test_videos_hints_of_the_next_query"),
)

VIDEO_ROWS: Mapping[str, Rows] = {
    "Video document, What the service does": OVERVIEW,
    "Video document, Resources": OBJECTS,
    "Video document, Models by entry": MODELS,
    "Video document, States": STATES,
    "POST /v1/video/generations": UNIFIED,
    "POST /v1/videos": VIDEO_OBJECT,
    "GET /v1/videos/{task_id}/content": CONTENT,
    "POST /vidD/api/v3/contents/generations/tasks": ENTRY_D,
    "Entry E": ENTRY_E,
    "Entries F and G": ENTRIES_F_AND_G,
    "Video document, Events": EVENTS,
    "Video document, readings": READINGS,
}
