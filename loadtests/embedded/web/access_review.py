"""SelfSubjectAccessReview: whoever holds the token may do everything that is served, and nothing else exists."""

from __future__ import annotations

from aiohttp import web

from loadtests.embedded.resources import Json
from loadtests.embedded.web.answers import json_answer
from loadtests.embedded.web.body import read_json

REVIEW_GROUP = "authorization.k8s.io"
REVIEW_PATH = f"/apis/{REVIEW_GROUP}/v1/selfsubjectaccessreviews"
REVIEW_RESOURCE: Json = {
    "name": "selfsubjectaccessreviews",
    "singularName": "selfsubjectaccessreview",
    "namespaced": False,
    "kind": "SelfSubjectAccessReview",
    "verbs": ["create"],
}


async def answer_review(request: web.Request) -> web.Response:
    """The answer does not depend on the question, so kubectl may ask in protobuf, too."""
    asked = await read_json(request) if request.content_type == "application/json" else {}
    spec = asked.get("spec") if isinstance(asked, dict) else None
    answer = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": f"{REVIEW_GROUP}/v1",
        "metadata": {},
        "spec": spec or {},
        "status": {"allowed": True, "reason": "the embedded server has one user"},
    }
    return json_answer(answer, 201)
