"""Whether a backend keeps its contract: ``python -m torch_lazy.conformance --backend NAME``.

For vendors of backends, who run it from an installed wheel; README.md has the files and what holds
for them. Nothing of PyTorch or of the plugin imports this package.
"""
