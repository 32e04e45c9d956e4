"""What the official client says of a router, as JSON for the test that runs this."""

import asyncio
import json
import sys

import openai

BASE = {"base_url": sys.argv[1], "api_key": "none", "max_retries": 0}
MESSAGES = [{"role": "user", "content": "Say something about looms."}]
CHAT = {"model": "demo", "messages": MESSAGES, "max_tokens": 16, "seed": 3, "temperature": 0}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def streamed(client, **more):
    """Text, and the number of chunks that carry usage."""
    text, usages = "", 0
    for chunk in client.chat.completions.create(stream=True, **CHAT, **more):
        usages += chunk.usage is not None
        for choice in chunk.choices:
            text += choice.delta.content or ""
    return text, usages


async def at_once(count):
    """How many of `count` streams at the same time came to their end."""
    async with openai.AsyncOpenAI(**BASE) as client:

        async def one():
            stream = await client.chat.completions.create(stream=True, **CHAT)
            return [chunk.choices[0].finish_reason async for chunk in stream][-1]

        return sum(reason is not None for reason in await asyncio.gather(*(one() for _ in range(count))))


def main():
    client = openai.OpenAI(**BASE)
    whole = client.chat.completions.create(**CHAT)
    plain, asked = streamed(client), streamed(client, stream_options={"include_usage": True})
    called = client.chat.completions.create(
        model="demo", messages=MESSAGES, max_tokens=200, tools=[WEATHER], tool_choice="required"
    )
    vectors = [
        client.embeddings.create(model="demo", input="loom", **more).data[0].embedding
        for more in ({}, {"encoding_format": "float"})
    ]
    try:
        client.chat.completions.create(model="nope", messages=MESSAGES)
        unknown = []
    except openai.APIStatusError as error:
        unknown = [type(error).__name__, error.code]
    response = client.responses.create(model="demo", input=MESSAGES, max_output_tokens=20)
    with client.chat.completions.create(
        model="demo", messages=MESSAGES, max_tokens=4000, stream=True
    ) as left:
        next(iter(left))
    print(
        json.dumps(
            {
                "models": [model.id for model in client.models.list()],
                "completion_tokens": whole.usage.completion_tokens,
                "streamed_equals_whole": plain[0] == asked[0] == whole.choices[0].message.content,
                "usage_only_when_asked": [plain[1], asked[1]],
                "tool": called.choices[0].message.tool_calls[0].function.name,
                "embedding_lengths_equal": len(vectors[0]) == len(vectors[1]) > 0,
                "unknown_model": unknown,
                "async_streams": asyncio.run(at_once(8)),
                "response_tokens": response.usage.output_tokens,
            }
        )
    )


main()
