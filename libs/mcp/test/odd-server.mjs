// An MCP server over stdio with faults. Lists one tool on each page.
import { createInterface } from 'node:readline';

const object = { type: 'object', properties: { text: { type: 'string' } } };
const TOOLS = [
  { name: 'lie', inputSchema: object, outputSchema: { ...object, required: ['text'] } },
  { name: 'shapeless', inputSchema: 'anything' },
  { name: 'large', inputSchema: { ...object, description: 'x'.repeat(70_000) } },
  { name: 'two words', inputSchema: object },
  { name: 'hang', description: 'y'.repeat(2_000), inputSchema: object },
  { name: 'exit', inputSchema: object },
  { name: 'garbage', inputSchema: object },
  { name: 'tell', inputSchema: object },
  { name: 'long', inputSchema: object },
  { name: 'fail', inputSchema: object },
  { name: 'environment', inputSchema: object },
];
const text = (said) => ({ content: [{ type: 'text', text: said }] });
const CALLS = {
  lie: () => ({ content: [], structuredContent: { text: 1 } }),
  exit: () => process.exit(3),
  garbage: () => void process.stdout.write('no JSON\n{"jsonrpc":"2.0","id":"other","result":{}}\n'),
  tell: ({ text: said }) => text(said),
  long: () => text('z'.repeat(100_005)),
  fail: () => ({ ...text(`the token is ${process.env.TOKEN}`), isError: true }),
  environment: () => ({ content: [], structuredContent: { names: Object.keys(process.env), token: process.env.TOKEN, pid: process.pid } }),
};

function answer(method, params) {
  if (method === 'initialize')
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } };
  if (method === 'tools/call') return CALLS[params.name]?.(params.arguments);
  if (method !== 'tools/list') return {};
  const at = Number(params.cursor ?? 0);
  return { tools: [TOOLS[at]], ...(at + 1 < TOOLS.length ? { nextCursor: String(at + 1) } : {}) };
}

console.error(`started with ${process.env.TOKEN}`);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  // Servers of older protocols end in this case too.
  if (method === 'server/discover') process.exit(1);
  const result = id === undefined ? undefined : answer(method, params);
  if (result !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
});
