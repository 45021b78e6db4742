"""Tasks of lm-evaluation-harness in all orders of their options. Needs the extra ``unslant[lm-eval]``.

``unslant lm-eval TASK --model MODEL``, or :func:`unslant.plugins.lm_eval.study.audit_tasks`.
"""
