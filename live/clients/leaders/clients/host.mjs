// Runs the clients of a program side by side, as hosted.py wants it.
import {closeSync, openSync, writeSync} from "node:fs";
import {createInterface} from "node:readline";
import {inspect} from "node:util";

// Begins a client with the arguments of the program, or, if there are none, all that are asked for on stdin.
// start(arguments, complain, ended) returns what ends the client.
export function host(start) {
  const own = process.argv.slice(2);
  if (own.length > 0) {
    start(own, (error) => console.error(error), (code) => process.exit(code));
    return;
  }
  const running = new Map();
  let count = 0;

  function begin(number, [output, ...words]) {
    const file = openSync(output, "a");
    const ended = (code) => {
      if (running.delete(number)) {
        closeSync(file);
        process.stdout.write(`-${number} ${code}\n`);
      }
    };
    const complain = (error) => {
      if (running.has(number)) writeSync(file, `${typeof error === "string" ? error : inspect(error)}\n`);
    };
    running.set(number, {ended});
    running.get(number).end = start(words, complain, ended);
  }

  createInterface({input: process.stdin}).on("line", (line) => {
    const [what, ...words] = line.split(" ").map(decodeURIComponent);
    if (what === "start") {
      process.stdout.write(`+${++count}\n`);
      begin(count, words);
    } else {
      const one = running.get(Number(words[0]));
      if (one) {
        one.ended(0);
        Promise.resolve(one.end()).catch(() => {}); // nobody is there to answer it
      }
    }
  }).on("close", () => process.exit());
}
