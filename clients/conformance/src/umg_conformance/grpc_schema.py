"""Schema of gRPC calls: `umg.v1` as this distribution was built with it, health checks, and details of errors. It is in
a descriptor pool of its own: a process may also have the generated modules of another version of `umg.v1`.
"""

from importlib.resources import files

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    built = FileDescriptorSet.FromString(files(__package__).joinpath("schema.binpb").read_bytes())
    for file in built.file:
        pool.AddSerializedFile(file.SerializeToString())
    for module in (health_pb2, error_details_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    return pool


DESCRIPTOR_POOL = _pool()
