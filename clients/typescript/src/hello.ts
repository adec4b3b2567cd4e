// Prints a first response.
import { chat, connect, user } from "umg-client";

const umg = connect(process.env["UMG_ADDRESS"] ?? "127.0.0.1:50051", process.env["UMG_API_KEY"] ?? "");
const request = { model: "famO-5", messages: [user("Say hello in five languages.")] };
for await (const piece of chat(umg, request)) process.stdout.write(piece);
console.log();
umg.close();
