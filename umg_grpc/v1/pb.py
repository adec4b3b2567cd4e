"""Every message and enum of `umg.v1`."""

from umg.v1.admin_pb2 import *  # noqa: F403
from umg.v1.admin_service_pb2 import *  # noqa: F403
from umg.v1.content_pb2 import *  # noqa: F403
from umg.v1.embedding_pb2 import *  # noqa: F403
from umg.v1.embedding_service_pb2 import *  # noqa: F403
from umg.v1.error_reason_pb2 import *  # noqa: F403
from umg.v1.file_pb2 import *  # noqa: F403
from umg.v1.file_service_pb2 import *  # noqa: F403
from umg.v1.generation_pb2 import *  # noqa: F403
from umg.v1.generation_service_pb2 import *  # noqa: F403
from umg.v1.guard_pb2 import *  # noqa: F403
from umg.v1.guard_service_pb2 import *  # noqa: F403
from umg.v1.image_pb2 import *  # noqa: F403
from umg.v1.image_service_pb2 import *  # noqa: F403
from umg.v1.model_pb2 import *  # noqa: F403
from umg.v1.model_service_pb2 import *  # noqa: F403
from umg.v1.options_pb2 import *  # noqa: F403
from umg.v1.rerank_pb2 import *  # noqa: F403
from umg.v1.rerank_service_pb2 import *  # noqa: F403
from umg.v1.source_pb2 import *  # noqa: F403
from umg.v1.video_pb2 import *  # noqa: F403
from umg.v1.video_service_pb2 import *  # noqa: F403
