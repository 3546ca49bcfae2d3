import { parsedJson } from '@etude/contracts/json';
import type { ChatMessage, ChatResponse, ChatTool, ChatToolCall } from '@etude/domain/ports/model';

export type CallParts = Map<number, ChatToolCall>;

/** The calls in order. A call without an id gets one from its position. */
export function joinedCalls(parts: CallParts): readonly ChatToolCall[] {
  const calls = [...parts].toSorted(([a], [b]) => a - b).map(([, call]) => call);
  return calls.map((call, at) => ({ ...call, id: call.id || `call_${at + 1}`, arguments: call.arguments || '{}' }));
}

export function messageOnWire({ role, content, toolCalls = [], toolCallId }: ChatMessage): Record<string, unknown> {
  if (role === 'tool') return { role, content, tool_call_id: toolCallId };
  if (toolCalls.length === 0) return { role, content };
  const calls = toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function',
    // The history may hold a wrong name or wrong arguments of the model. A server would refuse the whole request for them.
    function: { name: name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_', arguments: isObjectText(text) ? text : '{}' },
  }));
  return { role, content: content === '' ? null : content, tool_calls: calls };
}

function isObjectText(text: string): boolean {
  const value = parsedJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function toolOnWire({ name, description, inputSchema }: ChatTool): Record<string, unknown> {
  return { type: 'function', function: { name, description, parameters: inputSchema } };
}

const HOW = `# Tools

You can call these tools. To call one, answer with a fenced block whose language is "tool" and which holds one JSON object:

\`\`\`tool
{"name": "NAME", "arguments": {}}
\`\`\`

Several blocks are several calls. Their results come in the next message.`;

export function messagesAsText(messages: readonly ChatMessage[], tools: readonly ChatTool[]): ReadonlyArray<Record<string, unknown>> {
  const described = tools.map(({ name, description, inputSchema }) => `- ${name}: ${description}\n  ${JSON.stringify(inputSchema)}`);
  const plain = messages.map(({ role, content, toolCalls = [] }) => {
    if (role === 'tool') return { role: 'user' as const, content: `Result of the call:\n${content}` };
    return { role, content: [content, ...toolCalls.map(callAsText)].filter((text) => text !== '').join('\n\n') };
  });
  const [first, ...rest] = plain;
  if (first === undefined || first.role !== 'system') return plain;
  return joinedByRole([{ ...first, content: [first.content, HOW, described.join('\n')].join('\n\n') }, ...rest]);
}

const callAsText = ({ name, arguments: text }: ChatToolCall) =>
  `\`\`\`tool\n{"name": ${JSON.stringify(name)}, "arguments": ${text}}\n\`\`\``;

/** Joins neighbouring messages of the same role, because many servers require that roles alternate. */
function joinedByRole(messages: ReadonlyArray<{ readonly role: string; readonly content: string }>) {
  const joined: Array<{ role: string; content: string }> = [];
  for (const { role, content } of messages) {
    const last = joined.at(-1);
    if (last?.role === role) last.content += `\n\n${content}`;
    else joined.push({ role, content });
  }
  return joined;
}

const BLOCK = /^```tool[ \t]*\n([^]*?)^```[ \t]*$/gm;

export function calledInText<A extends Pick<ChatResponse, 'text' | 'toolCalls'>>(answer: A): A {
  const calls: ChatToolCall[] = [];
  const text = answer.text.replaceAll('\r\n', '\n').replace(BLOCK, (block: string, inside: string) => {
    const call = callIn(inside, `call_${calls.length + 1}`);
    if (call === null) return block;
    calls.push(call);
    return '';
  });
  return calls.length === 0 ? answer : { ...answer, text: text.trim(), toolCalls: calls };
}

function callIn(text: string, id: string): ChatToolCall | null {
  const { name, arguments: given = {} } = (parsedJson(text) ?? {}) as { name?: unknown; arguments?: unknown };
  return typeof name === 'string' ? { id, name, arguments: JSON.stringify(given) } : null;
}
