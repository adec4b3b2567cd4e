"""Text of the built-in config. Its simulated models have the prices of comparable models, as an example for budgets."""

from umg_grpc.operations import UNARY_OPERATIONS

LOCAL_CHANNEL = """\
  - name: local
    protocols: [local]
    models: [smollm2-135m-instruct, wordllama-256, wordllama-rerank]
"""
_MODELS = {model: (row.scope, price) for row in UNARY_OPERATIONS.values() for model, price in row.simulated.items()}
"""Simulated model of a unary operation -> the operation and the price."""
BUILT_IN = (
    f"channels:\n{LOCAL_CHANNEL}"
    + """\
  - name: sandbox
    protocols: [sandbox]
    models:
      - famG-2.5-flash
      - famG-2.5-pro
      - famG-3-pro
      - famG-2.5-flash-image
      - famG-3-pro-image-preview
      - famO-5-mini
      - famO-5
      - famC-sonnet-4-5
      - famQ-3-max
      - famR-1
      - famX-4
      - text-embedding-3-small
      - text-embedding-3-large
      - text-embedding-ada-002
      - famG-embedding-001
      - text-embedding-004
      - rerank-v1
"""
    + "".join(f"      - {model}\n" for model in _MODELS)
    + """\
      - imgA-3-0-t2i-250415
      - imgA-4-0-250828
      - imgA-4-5-251128
      - imgB-3-0-i2i-250628
      - imgC-1
      - imgC-1-mini
      - imgD-plus
      - imgD-edit-plus
      - imgD-edit
      - vidA-2
      - vidB-3.0-fast-generate-001
      - vidB-3.0-generate-preview
      - vidB-3.1-fast-generate-preview
      - vidB-3.1-generate-preview
      - vidC2.5-t2v-preview
      - vidC2.5-i2v-preview
      - vidD-1-0-lite-t2v-250428
      - vidD-1-0-lite-i2v-250428
      - vidD-1-0-pro-250528
      - vidD-1-5-pro-251215
      - vidD-1-5-pro-251215-noAudio
      - vidD-2-0-260128
      - vidD-2-0-fast-260128
      - vidD-2-5-260628
      - vidE-v1
      - vidE-v1-6
      - vidE-v2-master
      - vidE-v2-6
      - vidE-v2-5-turbo
      - vidE-v3
      - vidE-3.0
      - vidE-3.0-turbo
      - vidE-3.0-omni
      - vidF_vgfm_t2v_l20
      - vidG-H3
models:
  smollm2-135m-instruct:
    {created: 2024-11-01, display_name: SmolLM2 135M Instruct, tokenizer: smollm2}
  wordllama-256: {created: 2024-07-01, display_name: WordLlama 256}
  wordllama-rerank: {created: 2024-07-01, display_name: WordLlama as a reranker}
  famG-2.5-flash: &simulated
    {owned_by: umg-sandbox (simulated), created: 2026-01-01, display_name: famG 2.5 Flash (simulated), family: famG,
     price: {input: 0.3, cache_read: 0.03, output: 2.5}}
  famG-2.5-pro:
    {<<: *simulated, display_name: famG 2.5 Pro (simulated),
     price: {input: 1.25, cache_read: 0.125, output: 10}}
  famG-3-pro: {<<: *simulated, display_name: famG 3 Pro (simulated), price: {input: 2, cache_read: 0.2, output: 12}}
  famG-2.5-flash-image:
    {<<: *simulated, display_name: famG 2.5 Flash Image (simulated),
     price: {input: 0.3, output: 2.5, image_output: 30}}
  famG-3-pro-image-preview:
    {<<: *simulated, display_name: famG 3 Pro Image (simulated),
     price: {input: 2, output: 12, image_output: 120}}
  famO-5-mini:
    {<<: *simulated, display_name: famO 5 Mini (simulated), family: famO,
     price: {input: 0.25, cache_read: 0.025, output: 2}}
  famO-5:
    {<<: *simulated, display_name: famO 5 (simulated), family: famO,
     price: {input: 1.25, cache_read: 0.125, output: 10}}
  famC-sonnet-4-5:
    {<<: *simulated, display_name: famC Sonnet 4.5 (simulated), family: famC,
     price: {input: 3, cache_read: 0.3, cache_write: 3.75, long_cache_write: 6, output: 15}}
  famQ-3-max: {<<: *simulated, display_name: famQ 3 Max (simulated), family: famQ, price: {input: 1.2, output: 6}}
  famR-1:
    {<<: *simulated, display_name: famR 1 (simulated), family: famR,
     price: {input: 0.55, cache_read: 0.14, output: 2.19}}
  famX-4:
    {<<: *simulated, display_name: famX 4 (simulated), family: famX,
     price: {input: 3, cache_read: 0.75, output: 15}}
  text-embedding-3-small: &plain
    {owned_by: umg-sandbox (simulated), created: 2026-01-01, display_name: text-embedding-3-small (simulated),
     price: {input: 0.02}}
  text-embedding-3-large: {<<: *plain, display_name: text-embedding-3-large (simulated), price: {input: 0.13}}
  text-embedding-ada-002: {<<: *plain, display_name: text-embedding-ada-002 (simulated), price: {input: 0.1}}
  famG-embedding-001: {<<: *simulated, display_name: famG Embedding 001 (simulated), price: {input: 0.15}}
  text-embedding-004: {<<: *plain, display_name: text-embedding-004 (simulated), price: {input: 0.025}}
  rerank-v1: {<<: *plain, display_name: rerank-v1 (simulated), price: {search: 0.002}}
  imgA-3-0-t2i-250415: {<<: *simulated, display_name: imgA 3.0 (simulated), family: imgA, price: {image: 0.03}}
  imgA-4-0-250828: {<<: *simulated, display_name: imgA 4.0 (simulated), family: imgA, price: {image: 0.03}}
  imgA-4-5-251128: {<<: *simulated, display_name: imgA 4.5 (simulated), family: imgA, price: {image: 0.04}}
  imgB-3-0-i2i-250628: {<<: *simulated, display_name: imgB 3.0 (simulated), family: imgB, price: {image: 0.03}}
  imgC-1:
    {<<: *simulated, display_name: imgC 1 (simulated), family: imgC,
     price: {input: 5, image_input: 10, image_output: 40}}
  imgC-1-mini:
    {<<: *simulated, display_name: imgC 1 mini (simulated), family: imgC,
     price: {input: 2, image_input: 2.5, image_output: 8}}
  imgD-plus: {<<: *simulated, display_name: imgD plus (simulated), family: imgD, price: {image: 0.03}}
  imgD-edit-plus: {<<: *simulated, display_name: imgD edit plus (simulated), family: imgD, price: {image: 0.03}}
  imgD-edit: {<<: *simulated, display_name: imgD edit (simulated), family: imgD, price: {image: 0.045}}
  vidA-2:
    {<<: *simulated, family: vidA, display_name: vidA 2 (simulated), price: {video_second: 0.1}}
  vidB-3.0-fast-generate-001:
    {<<: *simulated, family: vidB, display_name: vidB 3.0 fast generate 001 (simulated),
     price: {video_second: {720p: 0.1, 1080p: 0.12}}}
  vidB-3.0-generate-preview:
    {<<: *simulated, family: vidB, display_name: vidB 3.0 generate preview (simulated),
     price: {video_second: {any: {any: 0.2, audio: 0.4}}}}
  vidB-3.1-fast-generate-preview:
    {<<: *simulated, family: vidB, display_name: vidB 3.1 fast generate preview (simulated),
     price: {video_second: {720p: 0.1, 1080p: 0.12}}}
  vidB-3.1-generate-preview:
    {<<: *simulated, family: vidB, display_name: vidB 3.1 generate preview (simulated),
     price: {video_second: {any: {any: 0.2, audio: 0.4}}}}
  vidC2.5-t2v-preview:
    {<<: *simulated, family: vidC, display_name: vidC2.5 t2v preview (simulated),
     price: {video_second: {480p: 0.05, 720p: 0.1, 1080p: 0.15}}}
  vidC2.5-i2v-preview:
    {<<: *simulated, family: vidC, display_name: vidC2.5 i2v preview (simulated),
     price: {video_second: {480p: 0.05, 720p: 0.1, 1080p: 0.15}}}
  vidD-1-0-lite-t2v-250428:
    {<<: *simulated, family: vidD, display_name: vidD 1 0 lite t2v 250428 (simulated),
     price: {video_second: {480p: 0.02, 720p: 0.04, 1080p: 0.09}}}
  vidD-1-0-lite-i2v-250428:
    {<<: *simulated, family: vidD, display_name: vidD 1 0 lite i2v 250428 (simulated),
     price: {video_second: {480p: 0.02, 720p: 0.04, 1080p: 0.09}}}
  vidD-1-0-pro-250528:
    {<<: *simulated, family: vidD, display_name: vidD 1 0 pro 250528 (simulated),
     price: {video_second: {480p: 0.03, 720p: 0.06, 1080p: 0.12}}}
  vidD-1-5-pro-251215:
    {<<: *simulated, family: vidD, display_name: vidD 1 5 pro 251215 (simulated),
     price: {video_second: {480p: 0.03, 720p: 0.06, 1080p: 0.13}}}
  vidD-1-5-pro-251215-noAudio:
    {<<: *simulated, family: vidD, display_name: vidD 1 5 pro 251215 noAudio (simulated),
     price: {video_second: {480p: 0.02, 720p: 0.03, 1080p: 0.07}}}
  vidD-2-0-260128:
    {<<: *simulated, family: vidD, display_name: vidD 2 0 260128 (simulated),
     price: {video_second: {480p: 0.07, 720p: 0.14, 1080p: 0.35}}}
  vidD-2-0-fast-260128:
    {<<: *simulated, family: vidD, display_name: vidD 2 0 fast 260128 (simulated),
     price: {video_second: {480p: 0.05, 720p: 0.11}}}
  vidD-2-5-260628:
    {<<: *simulated, family: vidD, display_name: vidD 2 5 260628 (simulated),
     price: {video_second: {480p: 0.08, 720p: 0.16, 1080p: 0.4}}}
  vidE-v1:
    {<<: *simulated, family: vidE, display_name: vidE v1 (simulated),
     price: {video_second: {any: {std: 0.028, pro: 0.098}}}}
  vidE-v1-6:
    {<<: *simulated, family: vidE, display_name: vidE v1 6 (simulated),
     price: {video_second: {any: {std: 0.056, pro: 0.098}}}}
  vidE-v2-master:
    {<<: *simulated, family: vidE, display_name: vidE v2 master (simulated), price: {video_second: 0.28}}
  vidE-v2-6:
    {<<: *simulated, family: vidE, display_name: vidE v2 6 (simulated),
     price: {video_second: {any: {std: 0.042, pro: 0.07}}}}
  vidE-v2-5-turbo:
    {<<: *simulated, family: vidE, display_name: vidE v2 5 turbo (simulated),
     price: {video_second: {any: {std: 0.042, pro: 0.07}}}}
  vidE-v3:
    {<<: *simulated, family: vidE, display_name: vidE v3 (simulated),
     price: {video_second: {any: {std: 0.084, pro: 0.112}}}}
  vidE-3.0:
    {<<: *simulated, family: vidE, display_name: vidE 3.0 (simulated),
     price: {video_second: {720p: 0.084, 1080p: 0.112}}}
  vidE-3.0-turbo:
    {<<: *simulated, family: vidE, display_name: vidE 3.0 turbo (simulated),
     price: {video_second: {720p: 0.056, 1080p: 0.084}}}
  vidE-3.0-omni:
    {<<: *simulated, family: vidE, display_name: vidE 3.0 omni (simulated),
     price: {video_second: {720p: 0.084, 1080p: 0.112}}}
  vidF_vgfm_t2v_l20:
    {<<: *simulated, family: vidF, display_name: vidF vgfm t2v l20 (simulated), price: {video_second: 0.05}}
  vidG-H3:
    {<<: *simulated, family: vidG, display_name: vidG H3 (simulated), price: {video_second: {768p: 0.08, 2k: 0.2}}}
"""
    + "".join(
        f"  {model}:\n    {{<<: *plain, display_name: {model} (simulated), capabilities: {{operations: [{scope}]}},\n"
        f"     price: {price}}}\n"
        for model, (scope, price) in _MODELS.items()
    )
)
