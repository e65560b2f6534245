"""llama.cpp's server with one model: ``serve.py MODEL PORT WINDOW``, run by the Python that has the packages."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
import time

import xllamacpp  # pyright: ignore[reportMissingImports] - in an environment of its own

model, port, window = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params = xllamacpp.CommonParams()
params.model.path = model
params.n_ctx = window
params.n_parallel = 1
# Two wait for each other most of the time if other programs have the cores.
params.cpuparams.n_threads = 1
params.port = port
params.use_jinja = True
server = xllamacpp.Server(params)
print("listening", flush=True)
while True:
    time.sleep(60)
