"""Service accounts for tests, with one private key."""

import json

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_KEY = _KEY.public_key()
PEM = _KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def key_file(url: str, pem: str = PEM) -> str:
    """Return the content of a key file, whose tokens are issued at `/token` below the URL."""
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "umg@p.example",
            "private_key": pem,
            "private_key_id": "k1",
            "token_uri": f"{url}/token",
        }
    )
