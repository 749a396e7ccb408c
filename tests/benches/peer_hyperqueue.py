"""Jobs a second of HyperQueue (`pip install hyperqueue`) on this machine through its LocalCluster: prints one number.

Arguments: seconds, and how many tasks one submission has (2000 when nothing is said).
"""

import sys
import tempfile
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

# One submission's tasks: enough that submitting them does not dominate.
TASKS = 2000


def main() -> None:
    seconds = float(sys.argv[1])
    tasks = int(sys.argv[2]) if len(sys.argv) > 2 else TASKS
    with tempfile.TemporaryDirectory() as directory:
        with LocalCluster(server_dir=directory, worker_config=WorkerConfig(cores=2)) as cluster:
            client = cluster.client()
            done, start = 0, time.monotonic()
            while time.monotonic() - start < seconds:
                job = Job(max_fails=0)
                for _ in range(tasks):
                    job.program(["true"], stdout=None, stderr=None)
                client.wait_for_jobs([client.submit(job)])
                done += tasks
            print(done / (time.monotonic() - start))


if __name__ == "__main__":
    main()
