// Prints a first answer.
import { connect } from "umg-client";

const umg = connect(process.env["UMG_ADDRESS"]!, process.env["UMG_API_KEY"]!);
for await (const piece of umg.chat("famO-5", "Say hello in five languages.")) process.stdout.write(piece);
umg.close();
