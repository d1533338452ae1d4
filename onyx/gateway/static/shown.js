import { showAll } from "./highlight.js";
showAll();
