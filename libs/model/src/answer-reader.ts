import { EtudeError } from '@etude/contracts/errors';
import { createParser } from 'eventsource-parser';
import { type Answer, AnswerAssembler } from './chat-answer.js';
import { parsedJson, type ServerAnswer } from './server-answer.js';
import { faultError, quoted, type ServerContext, serverName } from './server-errors.js';

/** How many times longer than its text a completion's body may be, because of escapes and the server's own fields. */
const BODY_OVER_TEXT = 16;
/** How much of a body is kept for the error message, in case it is no stream of events. */
const START_CHARS = 1_000;

/**
 * Reads the body of a chat completion: server-sent events or one JSON document.
 *
 * The first character tells which of them it is, because servers may ignore `stream` and send a wrong content type.
 * @throws EtudeError MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED, MODEL_REFUSED, or what the server's own error says
 */
export async function readAnswer(body: ServerAnswer, textBytesMax: number, context: ServerContext): Promise<Answer> {
  const assembler = new AnswerAssembler(textBytesMax);
  const events = { data: false, done: false };
  const parser = createParser({
    onEvent: ({ data }) => {
      events.data = true;
      if (data.trim() === '[DONE]') events.done = true;
      if (!events.done) assembler.accept(parsedJson(data));
      unread = 0;
    },
  });
  let [start, document, unread] = ['', '', 0];
  for await (const text of body.text()) {
    start = (start + text).trimStart().slice(0, START_CHARS);
    unread += text.length;
    if (start.startsWith('{')) document += text;
    else parser.feed(text);
    if (assembler.full || assembler.fault || unread > textBytesMax * BODY_OVER_TEXT) break;
    if (assembler.finished || events.done) body.finishSoon();
  }
  const value = parsedJson(document.trim());
  if (document) assembler.accept(value);
  // Ends the last event, in case the server left out the blank line behind it.
  else parser.feed('\n\n');
  const { fault, full, empty, finished } = assembler;
  if (fault) throw faultError(fault, context);
  if (full && !empty) return assembler.answer();
  if (!document && start && !events.data) throw noCompletion(start, context);
  if (start && value === undefined && !events.done && !finished) throw truncated(context);
  if (empty) throw emptyAnswer(assembler, document, context);
  return assembler.answer();
}

const truncated = (context: ServerContext) =>
  new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} cut its answer off before the end.`);

function emptyAnswer({ finishReason }: AnswerAssembler, document: string, context: ServerContext): EtudeError {
  const body = document === '' ? '' : ` It sent: ${quoted(document, context)}`;
  return new EtudeError(
    'MODEL_ANSWER_EMPTY',
    `${serverName(context)} answered without any text${finishReason ? ` (finish reason ${finishReason})` : ''}.${body}`,
  );
}

function noCompletion(text: string, context: ServerContext): EtudeError {
  return new EtudeError(
    'MODEL_REFUSED',
    `${serverName(context)} answered with something other than a chat completion: ${quoted(text, context)} ` +
      `Check ${context.settings.baseUrl}; it usually ends with /v1.`,
  );
}
