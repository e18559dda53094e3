"""Serves a GGUF model on loopback as Chat Completions, until it is told to stop."""
import os
import signal
import sys

import xllamacpp

# Where the model is to write a call in a code block: small coding models keep to that best.
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real_model_template.jinja")

settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.hostnames = ["127.0.0.1"]
settings.port = 0
settings.n_ctx = 12288
settings.n_parallel = 1
settings.use_jinja = True
settings.offline = True
settings.ui = False
settings.verbosity = 1
# One thread is faster than two on a busy machine of two cores.
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
if os.path.exists(TEMPLATE):
    with open(TEMPLATE, encoding="utf-8") as template:
        settings.chat_template = template.read()

server = xllamacpp.Server(settings)
print(f"READY {server.listening_address}", flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
os._exit(0)
