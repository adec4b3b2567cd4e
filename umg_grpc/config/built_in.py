"""Config that is used without a config file."""

BUILT_IN = """\
channels:
  - name: local
    protocols: [local]
    models: [smollm2-135m-instruct, wordllama-256, wordllama-rerank]
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
      - imgA-3-0-t2i-250415
      - imgA-4-0-250828
      - imgA-4-5-251128
      - imgB-3-0-i2i-250628
      - imgC-1
      - imgC-1-mini
      - imgD-plus
      - imgD-edit-plus
      - imgD-edit
models:
  smollm2-135m-instruct:
    {created: 2024-11-01, display_name: SmolLM2 135M Instruct, tokenizer: smollm2}
  wordllama-256: {created: 2024-07-01, display_name: WordLlama 256}
  wordllama-rerank: {created: 2024-07-01, display_name: WordLlama as a reranker}
  famG-2.5-flash: &simulated
    {owned_by: umg-sandbox (simulated), created: 2026-01-01, display_name: famG 2.5 Flash (simulated), family: famG}
  famG-2.5-pro: {<<: *simulated, display_name: famG 2.5 Pro (simulated)}
  famG-3-pro: {<<: *simulated, display_name: famG 3 Pro (simulated)}
  famG-2.5-flash-image: {<<: *simulated, display_name: famG 2.5 Flash Image (simulated)}
  famG-3-pro-image-preview: {<<: *simulated, display_name: famG 3 Pro Image (simulated)}
  famO-5-mini: {<<: *simulated, display_name: famO 5 Mini (simulated), family: famO}
  famO-5: {<<: *simulated, display_name: famO 5 (simulated), family: famO}
  famC-sonnet-4-5: {<<: *simulated, display_name: famC Sonnet 4.5 (simulated), family: famC}
  famQ-3-max: {<<: *simulated, display_name: famQ 3 Max (simulated), family: famQ}
  famR-1: {<<: *simulated, display_name: famR 1 (simulated), family: famR}
  famX-4: {<<: *simulated, display_name: famX 4 (simulated), family: famX}
  text-embedding-3-small: &plain
    {owned_by: umg-sandbox (simulated), created: 2026-01-01, display_name: text-embedding-3-small (simulated)}
  text-embedding-3-large: {<<: *plain, display_name: text-embedding-3-large (simulated)}
  text-embedding-ada-002: {<<: *plain, display_name: text-embedding-ada-002 (simulated)}
  famG-embedding-001: {<<: *simulated, display_name: famG Embedding 001 (simulated)}
  text-embedding-004: {<<: *plain, display_name: text-embedding-004 (simulated)}
  rerank-v1: {<<: *plain, display_name: rerank-v1 (simulated)}
  imgA-3-0-t2i-250415: {<<: *simulated, display_name: imgA 3.0 (simulated), family: imgA}
  imgA-4-0-250828: {<<: *simulated, display_name: imgA 4.0 (simulated), family: imgA}
  imgA-4-5-251128: {<<: *simulated, display_name: imgA 4.5 (simulated), family: imgA}
  imgB-3-0-i2i-250628: {<<: *simulated, display_name: imgB 3.0 (simulated), family: imgB}
  imgC-1: {<<: *simulated, display_name: imgC 1 (simulated), family: imgC}
  imgC-1-mini: {<<: *simulated, display_name: imgC 1 mini (simulated), family: imgC}
  imgD-plus: {<<: *simulated, display_name: imgD plus (simulated), family: imgD}
  imgD-edit-plus: {<<: *simulated, display_name: imgD edit plus (simulated), family: imgD}
  imgD-edit: {<<: *simulated, display_name: imgD edit (simulated), family: imgD}
"""
