import type { ChatRequest } from '@etude/domain/ports/model';

/** About how many tokens a text has, where nobody counted them: four characters each, as in English prose. */
export const approximateTokens = (chars: number) => Math.ceil(chars / 4);

export function requestChars({ messages, tools }: ChatRequest): number {
  const said = messages.reduce((sum, message) => sum + message.content.length + callChars(message.toolCalls ?? []), 0);
  return said + (tools?.length ? JSON.stringify(tools).length : 0);
}

export function callChars(calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>): number {
  return calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
}
