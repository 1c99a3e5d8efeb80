"""Coverage-guided fuzzing of every parser that reads bytes of a peer or a file.

Rule 1. A target raises nothing but the errors that its parser documents, and those it catches itself.
Rule 2. Each input has a bound of CPU time and of memory (target.py). An input beyond it is a finding.
Rule 3. The seeds are the same in each run, and `make test` replays them without atheris. An input that once was a
        finding is a seed.
"""
