"""protoc plugin that returns its own request as a file, for the test of `buf.gen.yaml`."""

import sys

from google.protobuf.compiler import plugin_pb2


def main() -> None:
    """Read a request of protoc's protocol and write the response."""
    request = sys.stdin.buffer.read()
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    response.file.add(name="request.hex", content=request.hex())
    sys.stdout.buffer.write(response.SerializeToString())


if __name__ == "__main__":
    main()
