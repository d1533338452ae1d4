"""What the benchmark ``match`` is made of: its workload, the process measured, the correct answers.

::

    inputs.py    profiles and messages, made or read, into a folder
    job.py       one measurement: the folder, the counts, the timings; starts the process
    process.py   the process: a fresh interpreter that holds nothing but the engine
    oracle.py    lxml's XPath on each profile alone: the answers, and a baseline
    yfilter.py   YFilter 1.0 on the same profiles and messages (with YFilterDriver.java)
"""
