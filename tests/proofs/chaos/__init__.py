"""Proof that no event costs a record, money or a task: three gateways behind a proxy lose replicas, disks and stores."""
