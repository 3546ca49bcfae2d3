import { Conversation, Message, TURNS_MAX } from '@etude/contracts/conversation';
import { EtudeError } from '@etude/contracts/errors';
import {
  type AddConversationRequest,
  AddConversationRequestSchema,
  ConversationSchema,
  type Memory as MemoryService,
  TurnSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { ConversationLayer } from '@etude/memory/memory';
import { z } from 'zod';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { ownScope, readScope } from '../readers/readers.js';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { askedPage } from '../wire/names.js';
import { invalidField, refuseAny } from '@etude/contracts/wire/validation';
import { type MemoryDeps, writeIdOf } from './record-calls.js';
import { deleteNamed } from './single-record-calls.js';
import { refuseSecrets } from '../calls/told-secrets.js';

const PAGE = { max: 1_000, standard: 100 };
const MESSAGES_MAX = 1_000;
const DAY_MS = 86_400_000;

const Asked = z.object({
  name: z.string().max(1_000),
  title: Conversation.shape.title,
  messages: z.array(Message).min(1).max(MESSAGES_MAX),
  first: z.number().int().min(0).max(TURNS_MAX).optional(),
});

export const conversationCalls = {
  async addConversation(request, call, deps) {
    const { first = null, ...told } = fromWire(Asked, AddConversationRequestSchema, request);
    const at = Date.now();
    refuseAny(
      told.messages.flatMap((message, n) =>
        (message.at ?? 0) > at + DAY_MS ? [{ field: `messages[${n}].time`, description: 'must be at most a day from now' }] : [],
      ),
    );
    await refuseSecrets(Object.fromEntries(told.messages.map(({ text }, n) => [`messages[${n}].text`, text])));
    const memory = await deps.memory.open();
    const known = request.id === '' ? null : await knownConversation(memory.conversations, request, call);
    const scope = known?.scope ?? ownScope(call, request);
    const content = { ...told, id: request.id, first };
    const writeId = await writeIdOf(memory, { layer: 'semantic', scope, requestId: request.requestId, content });
    const name = known?.name ?? (told.name === '' ? writeId : told.name);
    const added = await memory.conversations.add({ ...told, scope, name, writeId, first, at }, call.signal);
    return { ...added, conversation: conversationMessage(added.conversation) };
  },

  async listConversations(request, call, deps) {
    const scope = readScope(call, request);
    const { limit, after, cut } = askedPage(request, PAGE, ['ListConversations', scope]);
    const { conversations } = await deps.memory.open();
    const found = await conversations.list(scope, { limit, ...(after === null ? {} : { afterKey: after }) });
    const { items, nextPageToken } = cut(found, ({ id }) => id);
    return { conversations: items.map(conversationMessage), nextPageToken };
  },

  async listTurns(request, call, deps) {
    const { id } = request;
    const scope = readScope(call);
    const { limit, after, cut } = askedPage(request, PAGE, ['ListTurns', scope, id]);
    const { conversations } = await deps.memory.open();
    if ((await conversations.get(scope, id)) === null) throw unknown(id);
    const found = await conversations.turns(scope, id, { limit, ...(after === null ? {} : { afterKey: after }) });
    const { items, nextPageToken } = cut(found, (last) => last.id);
    return { turns: items.map((turn) => toWire(TurnSchema, turn)), nextPageToken };
  },

  async deleteConversation(request, call, deps) {
    await deleteNamed('conversation', request, call, deps);
    return {};
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

/** The conversation with the id of the request. @throws EtudeError NOT_FOUND, also for another user's; INVALID_ARGUMENT */
async function knownConversation(conversations: ConversationLayer, request: AddConversationRequest, call: CallContext) {
  const { id, name, user } = request;
  if (name !== '') throw invalidField('name', 'must be empty if id is set');
  const known = await conversations.get(readScope(call, request), id);
  if (known === null || (user !== '' && known.scope.user !== user)) throw unknown(id);
  return known;
}

const unknown = (id: string) =>
  new EtudeError('NOT_FOUND', `There is no conversation ${JSON.stringify(id)}; list the conversations to see which exist.`);

const conversationMessage = (conversation: Conversation) => toWire(ConversationSchema, { ...conversation, ...conversation.scope });
