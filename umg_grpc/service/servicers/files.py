"""Servicer of result files, which callers read by signed links."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.access.signed_file_links import FileLink, FileLinks
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.byte_ranges import selected_bytes
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.store.blob_store import Blob, BlobStore, not_found
from umg_grpc.v1 import pb, rpc


class FileServicer(rpc.FileServiceServicer):
    """Servicer of `umg.v1.FileService`. Its callers need no key: the token of the link is their credential."""

    def __init__(self, links: FileLinks, blobs: BlobStore | None) -> None:
        """Create a servicer. `links`: makes and checks signed links. `blobs`: None if the operator stores no files."""
        self._links = links
        self._blobs = blobs

    async def GetFile(self, request: pb.GetFileRequest, context: Context) -> pb.GetFileResponse:
        await validate(request)
        link, blob, _ = await self._find(request.token)
        return pb.GetFileResponse(
            file=pb.File(
                mime_type=blob.mime_type,
                size_bytes=blob.size,
                etag=blob.etag,
                create_time=Timestamp(seconds=int(blob.create_time.timestamp())),
                expire_time=Timestamp(seconds=int(link.expire_time.timestamp())),
                file_name=link.file_name or f"{blob.etag[:16]}.{blob.extension}",
            )
        )

    async def DownloadFile(
        self, request: pb.DownloadFileRequest, context: Context
    ) -> AsyncGenerator[pb.DownloadFileResponse, None]:
        await validate(request)
        _, blob, blobs = await self._find(request.token)
        start, end = selected_bytes(request.range, blob.size)
        yield pb.DownloadFileResponse(
            head=pb.ContentHead(
                mime_type=blob.mime_type, total_bytes=blob.size, offset=start, length_bytes=end - start, etag=blob.etag
            )
        )
        async with aclosing(blobs.read(blob, start, end)) as parts:
            async for part in parts:
                yield pb.DownloadFileResponse(chunk=part)

    async def _find(self, token: str) -> tuple[FileLink, Blob, BlobStore]:
        link = self._links.read(token)
        if self._blobs is None:
            raise not_found()
        return link, await self._blobs.head(link.blob_id), self._blobs
