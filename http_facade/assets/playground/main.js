// Start of the playground.

import { Shell } from "./shell.js";

new Shell().start();
