import type { SpanValues, Tracing } from '@etude/contracts/tracing';
import type { ChatMessage, ChatModel, ChatRequest, ChatResponse, Embedder } from '@etude/domain/ports/model';

interface Server {
  readonly server: URL;
  /** undefined if the server chooses the model. */
  readonly model: string | undefined;
}

/** A span covers a call with its retries. It follows OpenTelemetry's conventions for GenAI clients. */
export function traced(chat: ChatModel, tracing: Tracing, to: Server): ChatModel {
  return {
    chat: (request, signal) =>
      tracing.span(to.model === undefined ? 'chat' : `chat ${to.model}`, { kind: 'client', values: asked(request, to) }, async (span) => {
        span.setContent(() => ({ 'gen_ai.input.messages': JSON.stringify(request.messages.map(messageOf)) }));
        const answer = await chat.chat(request, signal);
        span.set(answered(answer));
        span.setContent(() => ({ 'gen_ai.output.messages': JSON.stringify([outputOf(answer)]) }));
        return answer;
      }),
  };
}

export function tracedEmbedder(embedder: Embedder, tracing: Tracing, { server, model }: Server): Embedder {
  const values = {
    'gen_ai.operation.name': 'embeddings',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': model,
    ...placeOf(server),
  };
  return {
    profile: embedder.profile,
    embed: (texts, signal) => tracing.span(`embeddings ${model}`, { kind: 'client', values }, () => embedder.embed(texts, signal)),
  };
}

const placeOf = ({ hostname, port }: URL): SpanValues => ({ 'server.address': hostname, 'server.port': Number(port) || undefined });

function asked({ temperature, outputTokensMax, account }: ChatRequest, { server, model }: Server): SpanValues {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': model,
    'gen_ai.request.temperature': temperature,
    'gen_ai.request.max_tokens': outputTokensMax,
    'gen_ai.agent.name': account?.agent,
    ...placeOf(server),
    'etude.tenant': account?.tenant,
    'etude.purpose': account?.purpose,
  };
}

const answered = ({ model, inputTokens, outputTokens, finishReason, toolCalls, costUsd }: ChatResponse): SpanValues => ({
  'gen_ai.response.model': model,
  'gen_ai.response.finish_reasons': [reasonOf({ finishReason, toolCalls })],
  'gen_ai.usage.input_tokens': inputTokens,
  'gen_ai.usage.output_tokens': outputTokens,
  'etude.cost_usd': costUsd,
});

const reasonOf = ({ finishReason, toolCalls = [] }: Pick<ChatResponse, 'finishReason' | 'toolCalls'>) =>
  toolCalls.length > 0 ? 'tool_call' : finishReason;

function messageOf({ role, content, toolCalls = [], toolCallId: id }: ChatMessage) {
  if (role === 'tool') return { role, parts: [{ type: 'tool_call_response', id, response: content }] };
  const calls = toolCalls.map((call) => ({ type: 'tool_call', id: call.id, name: call.name, arguments: call.arguments }));
  return { role, parts: [{ type: 'text', content }, ...calls] };
}

const outputOf = (answer: ChatResponse) => ({
  ...messageOf({ role: 'assistant', content: answer.text, toolCalls: answer.toolCalls }),
  finish_reason: reasonOf(answer),
});
