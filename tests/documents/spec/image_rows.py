"""Rows and rules of the image document, and the readings of it, with their tests: section -> (text, tests)."""

from collections.abc import Mapping

Rows = tuple[tuple[str, ...], ...]

_FOREIGN = "test_images_a_field_of_another_family_is_refused"

FAMILIES: Rows = (
    (
        "G: text-to-image, image-to-image, fusion of 2-5 images, multi-turn editing",
        *("test_images_fusion_takes_two_to_five_images", "test_images_field_contents"),
    ),
    ("A 3.0: text-to-image only; guidance scale; seed", "test_images_a_image", "test_images_a_guidance_scale"),
    (
        "A 4.x: text-to-image, image-to-image, fusion, groups, 2K and 4K, prompt optimization",
        *("test_images_fusion_takes_two_to_five_images", "test_images_a_group", "test_images_a_size"),
    ),
    ("B: editing from one image and a text; no text-only generation", "test_images_b_edits_exactly_one_image"),
    ("C: text-to-image, up to 10 images, quality, input fidelity", "test_images_c_image_and_images"),
    ("D plus: text-to-image, no image input", "test_images_d_image_is_only_for_the_edit_models"),
    ("D edit: editing; up to 6 images, or 1", "test_images_d_n", "test_images_d_number_of_images"),
    ("the models are listed", "test_images_every_model_is_in_the_model_list"),
)

RESULT: Rows = (
    ("code, msg, data{data, created}", "test_images_every_model_answers_in_the_envelope"),
    ("url or b64_json by family and response_format", "test_images_field_response_format"),
    ("contents: turns of parts, each a text or an image", "test_images_field_contents"),
)

GENERATIONS: Rows = (
    ("model", "test_images_field_model"),
    ("prompt", "test_images_field_prompt"),
    ("response_format", "test_images_field_response_format"),
    ("contents", "test_images_field_contents"),
    ("unknown fields", "test_images_unknown_fields_are_reported"),
    ("G: size, a ratio", "test_images_g_size_is_one_of_ten_ratios"),
    ("G: size, pixels", "test_images_g_size_in_pixels_is_the_nearest_ratio"),
    ("G: quality", "test_images_g_quality_selects_the_tier"),
    ("G: n", "test_images_g_n"),
    ("G: image_size", "test_images_g_image_size_is_the_tier"),
    ("G: mime_type", "test_images_g_mime_type"),
    ("G: response_modalities", "test_images_g_response_modalities"),
    ("G: top_p and temperature", "test_images_g_sampling"),
    ("G: person generation, output tokens, aspect ratio", "test_images_g_unnamed_parameters"),
    ("A: image", "test_images_a_image", "test_images_b_edits_exactly_one_image"),
    ("A: size", "test_images_a_size", "test_images_a_size_outside_the_list"),
    ("A: watermark", "test_images_a_watermark"),
    ("A: seed", "test_images_a_seed"),
    ("A: guidance_scale", "test_images_a_guidance_scale"),
    ("A: sequential_image_generation", "test_images_a_group"),
    ("A: sequential_image_generation_options", "test_images_a_group_options"),
    ("A: optimize_prompt_options", "test_images_a_prompt_optimization"),
    ("C: size", "test_images_c_size"),
    ("C: quality", "test_images_c_quality"),
    ("C: n", "test_images_c_n"),
    ("C: input_fidelity", "test_images_c_input_fidelity"),
    ("C: image and images", "test_images_c_image_and_images"),
    ("D: input", "test_images_d_input", "test_images_d_image_is_only_for_the_edit_models"),
    ("D: the last image fixes the output ratio", "test_images_d_the_last_image_fixes_the_ratio"),
    ("D: parameters", "test_images_d_parameters", "test_images_d_size", "test_images_d_watermark_is_on_by_default"),
    ("a field of another family is 400", _FOREIGN),
)

LIMITS: Rows = (
    ("C images per request", "test_images_c_n"),
    ("C input images: number, formats, bytes", "test_images_c_input_formats", "test_images_c_input_bytes"),
    ("A groups 1-4", "test_images_a_group_options"),
    ("A and D seed", "test_images_a_seed", "test_images_d_parameters"),
    ("G and A fusion 2-5", "test_images_fusion_takes_two_to_five_images"),
    ("D output", "test_images_d_n"),
)

READINGS: Rows = (
    ("1: wrong values are 400", "test_images_field_prompt", _FOREIGN),
    ("2: the native key header is no credential", "test_images_the_native_key_header_is_no_credential"),
    ("3: error bodies with both shapes", "test_images_errors_carry_both_shapes"),
    (
        "4: an unknown model, a refused stream",
        "test_images_field_model",
        "test_a_refused_stream_is_an_error_with_its_status",
    ),
    ("23: exactly one of url and b64_json", "test_images_field_response_format"),
    ("23: result links without credentials", "test_images_result_links_work_without_credentials"),
    ("24: tiers and ratios of G", "test_images_g_image_size_is_the_tier"),
    ("24: A image, a string or an array; exactly the pixels", "test_images_a_image", "test_images_a_size"),
    ("25: groups; C files; D", "test_images_a_group_options", "test_images_c_input_formats", "test_images_d_size"),
    ("26: addresses are drawn as placeholders", "test_images_a_callers_address_is_drawn_as_a_placeholder"),
    ("images on the native path", "test_images_on_the_native_path"),
    ("SDKs receive their own shape", "test_images_an_sdk_receives_its_own_shape"),
)

SDK_PATHS: Rows = (
    ("edits as forms", "test_edits_take_a_form", "test_edits_take_several_images_and_options_as_texts"),
    ("edits with a mask", "test_edits_take_a_mask"),
    ("edits as JSON", "test_edits_take_json"),
    ("edits of every family", "test_edits_serve_every_family_with_input_images"),
    ("wrong forms", "test_edits_refuse_wrong_forms", "test_generations_take_no_form"),
    ("variations", "test_variations_are_made_of_one_image_without_a_prompt"),
    (
        "streams",
        *("test_streams_have_the_events_of_sdks", "test_streams_of_edits_have_names_of_their_own"),
        *("test_streams_carry_bytes_for_every_family", "test_streams_of_a_group_have_one_event_an_image"),
        "test_a_broken_stream_ends_with_an_error_event",
    ),
)

IMAGE_ROWS: Mapping[str, Rows] = {
    "Image document, model families": FAMILIES,
    "Image result, content item": RESULT,
    "POST /v1/images/generations": GENERATIONS,
    "Image document, Limits": LIMITS,
    "Image document, readings": READINGS,
    "Edits, variations and streams of SDKs": SDK_PATHS,
}
