// Prints a first answer.
import { connect } from "umg-client";

const umg = connect(process.env["UMG_ADDRESS"] ?? "127.0.0.1:50051", process.env["UMG_API_KEY"] ?? "");
for await (const piece of umg.chat("famO-5", "Say hello in five languages.")) process.stdout.write(piece);
console.log();
umg.close();
