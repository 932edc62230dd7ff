// Preloaded into a server (node --require): keeps a journal of the frames that it reads ("> ") and writes ("< "), in the
// order in which it does, one file for each life, and ends the process at a moment that a test has chosen.
//
// MCP_TAP names a directory. If it holds a file "die" that says "in NAME", the process kills itself when it is sent a
// request of that method or a call of that tool, before the server sees it; "out NAME": when the answer is about to be
// written. The file is removed first, so that the next life is spared.
'use strict';
const fs = require('fs');
const path = require('path');

const dir = process.env.MCP_TAP;
if (dir) {
  const life = fs.readdirSync(dir).filter((name) => name.endsWith('.journal')).length + 1;
  const journal = path.join(dir, `${life}.journal`);
  fs.writeFileSync(journal, `pid ${process.pid}\n`);

  const die = path.join(dir, 'die');
  let doomed; // the id whose answer must not be written

  const seen = {
    '> ': (message) => {
      if (!message.method || message.id === undefined || !fs.existsSync(die)) return false;
      const [moment, name] = fs.readFileSync(die, 'utf8').split(' ');
      if (message.method !== name && !(message.method === 'tools/call' && message.params?.name === name)) return false;
      fs.unlinkSync(die);
      if (moment === 'in') return true;
      doomed = message.id;
      return false;
    },
    '< ': (message) => doomed !== undefined && message.id === doomed && !message.method,
  };

  const record = (direction) => {
    let rest = '';
    const decoder = new (require('string_decoder').StringDecoder)('utf8');
    return (chunk) => {
      const lines = (rest + (typeof chunk === 'string' ? chunk : decoder.write(chunk))).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        fs.appendFileSync(journal, direction + line + '\n');
        let message = {};
        try {
          message = JSON.parse(line);
        } catch {}
        if (seen[direction](message)) {
          process.kill(process.pid, 'SIGKILL');
        }
      }
    };
  };

  const read = record('> ');
  const emit = process.stdin.emit;
  process.stdin.emit = function (event, ...args) {
    if (event === 'data') read(args[0]);
    return emit.call(this, event, ...args);
  };
  const written = record('< ');
  const write = process.stdout.write;
  process.stdout.write = function (chunk, ...args) {
    written(chunk);
    return write.call(this, chunk, ...args);
  };
}
