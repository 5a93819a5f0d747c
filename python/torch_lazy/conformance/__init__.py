"""What compares device ``lazy`` with eager on the CPU: random programs and PyTorch's own samples.

Nothing of PyTorch or of the plugin imports this package; whoever runs its commands does.
"""
