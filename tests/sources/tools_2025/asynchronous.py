"""Creating Tools: an asynchronous function."""

# pyright: basic

import json
import threading


def client_request(method, params, callback):
    """Stand for ``vim.lsp.client.request``, which calls back later."""
    threading.Timer(0.01, callback, (None, {"method": method, **params})).start()


lsp_method, lsp_param = "textDocument/definition", {"line": 3}


# Line 222.
def request(self, args, input, output_handler):
    # This is for demonstration only
    def callback(err, result):
        self.tools.chat.add_message({"role": "user", "content": json.dumps(result)})
        output_handler({"status": "success", "data": result})

    client_request(lsp_method, lsp_param, callback)


TOOL = {"cmds": [request]}
