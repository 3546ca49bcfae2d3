export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly temperature?: number;
  readonly outputTokensMax?: number;
  /** Gets the text in parts while it is written. A retry begins again. */
  readonly onText?: (text: string) => void;
}

export interface ChatResponse {
  readonly text: string;
  readonly finishReason: 'stop' | 'length';
  /** The model's name as the server reported it. */
  readonly model: string;
  /** The answer came from a script, not from a model. */
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

/**
 * Gets one answer from a language model.
 *
 * The adapter does all retries (429 with Retry-After, 5xx, cut streams, empty answers); callers don't retry.
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED, MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED; an AbortError when
 * `signal` aborts.
 * Not in it: prompts, parsing of answers, journaling.
 */
export interface ChatModel {
  chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse>;
}
