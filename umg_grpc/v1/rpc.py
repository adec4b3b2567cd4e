"""Every stub, servicer and registration function of `umg.v1`."""

from umg.v1.admin_service_pb2_grpc import *  # noqa: F403
from umg.v1.embedding_service_pb2_grpc import *  # noqa: F403
from umg.v1.file_service_pb2_grpc import *  # noqa: F403
from umg.v1.generation_service_pb2_grpc import *  # noqa: F403
from umg.v1.guard_service_pb2_grpc import *  # noqa: F403
from umg.v1.image_service_pb2_grpc import *  # noqa: F403
from umg.v1.model_service_pb2_grpc import *  # noqa: F403
from umg.v1.rerank_service_pb2_grpc import *  # noqa: F403
from umg.v1.video_service_pb2_grpc import *  # noqa: F403
