"""LangChain's embeddings of google; one request and one response per line.

in:  {root, key, waiting: by the asynchronous functions,
      jobs: [{id, model, texts, alone, dimensions, task, key}]}; fields that a job does not set are null
out: {id: {vectors} | {error: {class, message}}}
"""

import asyncio
import json
import ssl
import sys
from typing import Any

from langchain_google_genai import GoogleGenerativeAIEmbeddings

# The gateway is called without TLS, and each client would load all authorities of the system, for 60 ms.
ssl.SSLContext.load_verify_locations = lambda *_, **__: None  # type: ignore[method-assign]


async def run(request: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    options = {"output_dimensionality": job["dimensions"], "task_type": job["task"]}
    settings = {name: value for name, value in options.items() if value is not None}
    model = GoogleGenerativeAIEmbeddings(
        model=job["model"], base_url=request["root"], api_key=job["key"] or request["key"], **settings
    )
    texts = job["texts"]
    if request["waiting"]:
        vectors = [await model.aembed_query(texts[0])] if job["alone"] else await model.aembed_documents(texts)
    else:
        vectors = [model.embed_query(texts[0])] if job["alone"] else model.embed_documents(texts)
    return {"vectors": vectors}


async def answer(request: dict[str, Any]) -> dict[str, Any]:
    results = {}
    for job in request["jobs"]:
        try:
            results[job["id"]] = await run(request, job)
        except Exception as error:
            results[job["id"]] = {"error": {"class": type(error).__name__, "message": str(error)}}
    return results


for line in sys.stdin:
    sys.stdout.write(f"{json.dumps(asyncio.run(answer(json.loads(line))))}\n")
    sys.stdout.flush()
