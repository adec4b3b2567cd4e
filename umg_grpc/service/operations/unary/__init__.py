"""Operations with one request and one response, which is never streamed."""
