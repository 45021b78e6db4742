"""Runs other evaluation tools, each in an environment of its own, and compares what unslant makes of their output.

    make test-peers                                    # installs them into .peers/ and writes docs/compatibility.md
    python -m benchmarks.peers --only lm-eval inspect  # some of them; the page is not written

A tool is a function that yields cases: ``harnesses.py`` has the tools that write logs, ``models.py`` what a model may
be. ``scripts/`` holds what runs inside the tools' environments, ``tasks/`` what lm-eval is given.
"""
