"""Annotation sheets: do people confirm the answers of composed questions?"""
