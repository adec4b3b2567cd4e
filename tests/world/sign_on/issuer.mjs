// OpenID Connect issuer (oidc-provider, certified) on a free port. Each line of input is a JSON object with changes of its
// settings, and is answered by a line; the first line of output is its URL.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const settings = { redirect: "http://127.0.0.1/auth/callback", groups: [], audience: "umg-api", keys: 1 };
let keys = [];
let handle = (_request, response) => response.writeHead(503).end();

function newKey(kid) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" };
}

function configure(url) {
  while (keys.length < settings.keys) keys.push(newKey(`key-${keys.length + 1}`));
  const provider = new Provider(url, {
    clients: [
      {
        client_id: "umg",
        client_secret: "secret of the client",
        redirect_uris: [settings.redirect],
        grant_types: ["authorization_code"],
      },
      {
        client_id: "program",
        client_secret: "secret of the program",
        grant_types: ["client_credentials"],
        response_types: [],
        redirect_uris: [],
      },
    ],
    jwks: { keys: [keys.at(-1)] },
    cookies: { keys: ["a key for cookies of a test"] },
    conformIdTokenClaims: false,
    claims: { openid: ["sub"], profile: ["name", "groups"], email: ["email", "email_verified"] },
    async findAccount(_context, sub) {
      const person = { sub, name: "Ada", email: `${sub}@example.com`, email_verified: true };
      return { accountId: sub, claims: async () => ({ ...person, groups: settings.groups }) };
    },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: async () => ({
          scope: "call",
          audience: settings.audience,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    pkce: { required: () => true },
    extraTokenClaims: async () => ({ models: ["famO-*"] }),
    ttl: { AccessToken: 600, ClientCredentials: 600, IdToken: 600, Interaction: 600, Session: 600, Grant: 600 },
  });
  handle = provider.callback();
}

const server = createServer((request, response) => handle(request, response));
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  configure(url);
  process.stdout.write(`${url}\n`);
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      Object.assign(settings, JSON.parse(line));
      configure(url);
      process.stdout.write("done\n");
    })
    .on("close", () => process.exit(0));
});
