"""Creating Adapters, line 388: reasoning in a field of its own."""

# pyright: basic


def parse_extra(self, data):
    extra = data["extra"]
    if extra.get("reasoning_content"):
        # codecompanion expect the reasoning tokens in this format
        data["output"]["reasoning"] = {"content": extra["reasoning_content"]}
        # so that codecompanion doesn't mistake this as a normal response with empty string as the content
        if data["output"].get("content") == "":
            data["output"]["content"] = None
    return data


ADAPTER = {
    "extends": "openai_compatible",
    "url": "https://api.deepseek.com/chat/completions",
    "handlers": {"response": {"parse_extra": parse_extra}},
    "schema": {"model": {"default": "deepseek-reasoner"}},
}
