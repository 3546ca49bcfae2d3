// Writes Markdown pages of the API from the proto files, as `buf build` reads them with comments, and from the OpenAPI description.

/** Field numbers of descriptor.proto by which source locations name their element. */
const [MESSAGES, ENUMS, SERVICES] = [4, 5, 6];
const [FIELDS, NESTED, NESTED_ENUMS, VALUES, METHODS] = [2, 3, 4, 2, 2];

/** Texts of fields that mean the same in every message. A field's own comment replaces the text. */
const USUAL = {
  agent: 'The agent that is meant, or that owns this.',
  user: 'The end user that is meant, or that owns this; empty: none in particular.',
  request_id: 'Makes a repeat harmless: requests with one id are one change.',
  page_size: 'The most items of the answer.',
  page_token: '`next_page_token` of the page before; empty: the first page.',
  next_page_token: 'Empty on the last page.',
  create_time: 'When it was made.',
  update_time: 'When it last changed.',
  end_time: 'When it ended; absent before.',
  version: 'Number of the version, from 1.',
  reason: 'Why, in a sentence.',
  dry_run: 'Nothing is changed, only told.',
  update_mask: 'The fields to change.',
  scripted: 'Whether the scripted model had a part in it.',
  model_calls: 'Number of calls of the model.',
  input_tokens: 'Tokens that the model read.',
  output_tokens: 'Tokens that the model wrote.',
  cost_usd: 'US dollars.',
  layer: '"episodic", "semantic" or "procedural".',
  queue: 'Such as "rollout.run".',
  step: 'Such as "a1.generate".',
  attempt: 'Number of the attempt, from 1; 0: a skill.',
  cases_passed: 'Test cases that passed.',
  cases_total: 'All test cases.',
  mutants_made: 'Changed copies of the code that the tests ran on.',
  mutants_noticed: 'Changed copies that failed a test.',
  input_schema: 'JSON Schema of the arguments.',
  output_schema: 'JSON Schema of the result.',
  execution_id: 'The execution that is meant.',
  resume_token: 'To go on after this event.',
  labels: 'Texts of the caller, by name.',
  stdout: 'What the code printed.',
  stderr: 'What the code printed as errors.',
  success: 'Whether it ended well.',
  digest: 'sha256 over code, contract, tests and pinned dependencies.',
  similarity: '0 to 1.',
  time: 'When it happened.',
  tags: 'Free words.',
  display_name: 'A title for people.',
  example_prompts: 'What people ask that it answers.',
  chunk: 'Bytes of the file, in order.',
  id: 'Its id, for other calls.',
  title: 'A title for people.',
  description: 'What it does, in words.',
  error: 'Why it failed.',
  path: 'Relative to the working directory.',
  episodes_read: 'Episodes that were read.',
  groups: 'Groups of alike episodes; the model is asked about each.',
  facts_added: 'New facts.',
  facts_reinforced: 'Known facts that were told again.',
  skills_proposed: 'Skills that verification got.',
  args: 'Positional arguments.',
  kwargs: 'Arguments by name.',
  stdin: 'What the program reads.',
  expected_stdout: 'What the program should write.',
  duration_ms: 'In ms.',
};

/** The text of a field: its own comment, the usual text, or the comment of its type. */
function textOf({ name, typeName = '' }, message, own, types) {
  if (own !== '') return own;
  if (name === 'name' && message.endsWith('Request')) return 'Full name of the object, such as "skills/add_tax".';
  return USUAL[name] ?? types.get(typeName) ?? '';
}

/** Text of a comment as Markdown, in which VitePress must see neither tags nor Vue. */
const safe = (text) => text.trim().replaceAll(/\s+/g, ' ').replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;').replaceAll('|', '\\|');
const short = (type) => type.replace(/^\.(etude\.v1|google\.protobuf|google\.rpc)\./, '');
const anchor = (name) => name.toLowerCase().replaceAll('.', '');

function commentsOf({ sourceCodeInfo = {} }) {
  const all = new Map();
  for (const { path = [], leadingComments = '' } of sourceCodeInfo.location ?? [])
    if (leadingComments) all.set(path.join('.'), safe(leadingComments));
  return (...path) => all.get(path.join('.')) ?? '';
}

/** @returns a link to a message or an enum of the API, or the name of any other type */
function typeOf({ type, typeName = '', label, proto3Optional }, where, entries) {
  const entry = entries.get(typeName);
  if (entry) return `map of ${typeOf(entry[0], where, entries)} to ${typeOf(entry[1], where, entries)}`;
  const name = short(typeName);
  const page = where.get(typeName);
  const shown = page ? `[${name}](./${page}.md#${anchor(name)})` : name || type.replace('TYPE_', '').toLowerCase();
  const many = label === 'LABEL_REPEATED' ? 'list of ' : '';
  return `${many}${shown}${proto3Optional ? ', optional' : ''}`;
}

/** All messages and enums of a file, nested ones after their parents, with path and full name. */
function* typesOf(file) {
  yield* messagesIn(file.messageType ?? [], [MESSAGES], `.${file.package}`);
  yield* enumsIn(file.enumType ?? [], [ENUMS], `.${file.package}`);
}

function* messagesIn(messages, path, prefix) {
  for (const [at, message] of messages.entries()) {
    const [name, own] = [`${prefix}.${message.name}`, [...path, at]];
    yield { kind: 'message', message, name, path: own };
    yield* enumsIn(message.enumType ?? [], [...own, NESTED_ENUMS], name);
    yield* messagesIn(message.nestedType ?? [], [...own, NESTED], name);
  }
}

function* enumsIn(enums, path, prefix) {
  for (const [at, message] of enums.entries()) yield { kind: 'enum', message, name: `${prefix}.${message.name}`, path: [...path, at] };
}

const pageOf = (file) => file.name.replace(/^.*\/(\w+)\.proto$/, '$1');

const table = (head, rows) =>
  rows.length === 0
    ? ''
    : [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows.map((row) => `| ${row.join(' | ')} |`), ''].join('\n');

/** Yields the name and text of a page for each file with a service. @param image the output of `buf build` */
export function* apiPages({ file: files }) {
  const own = files.filter(({ package: name }) => name === 'etude.v1');
  const where = new Map(own.flatMap((file) => [...typesOf(file)].map(({ name }) => [name, pageOf(file)])));
  const entries = new Map(
    own.flatMap((file) =>
      [...typesOf(file)].filter(({ message }) => message.options?.mapEntry).map(({ name, message }) => [name, message.field]),
    ),
  );
  const types = new Map(own.flatMap((file) => [...typesOf(file)].map(({ name, path }) => [name, commentsOf(file)(...path)])));
  for (const file of own) {
    const comment = commentsOf(file);
    const parts = [...servicesOf(file, comment, where, entries), '## Messages', ...messagesOf(file, comment, where, entries, types)];
    yield [pageOf(file), `${parts.filter((part) => part !== '').join('\n\n')}\n`];
  }
}

function* servicesOf(file, comment, where, entries) {
  for (const [at, service] of (file.service ?? []).entries()) {
    yield* [`# ${service.name}`, comment(SERVICES, at)];
    for (const [index, { name, inputType, outputType, clientStreaming, serverStreaming }] of service.method.entries()) {
      const [from, to] = [inputType, outputType].map((type) => typeOf({ typeName: type }, where, entries));
      yield* [`## ${name}`, `${clientStreaming ? 'stream of ' : ''}${from} → ${serverStreaming ? 'stream of ' : ''}${to}`];
      yield comment(SERVICES, at, METHODS, index);
    }
  }
}

function* messagesOf(file, comment, where, entries, types) {
  for (const { kind, message, name, path } of typesOf(file)) {
    if (message.options?.mapEntry) continue;
    yield* [`### ${short(name)}`, comment(...path)];
    if (kind === 'enum') {
      const rows = message.value.map((value, index) => [`\`${value.name}\``, comment(...path, VALUES, index)]);
      yield table(['value', 'meaning'], rows);
    } else {
      const text = (field, index) => textOf(field, message.name, comment(...path, FIELDS, index), types);
      const told = (field, index) => [`\`${field.name}\``, typeOf(field, where, entries), text(field, index)];
      yield table(['field', 'type', 'meaning'], (message.field ?? []).map(told));
    }
  }
}

/** @param api the OpenAPI description */
export function httpPage({ paths }) {
  const rows = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, { summary = '' }]) => [`\`${verb.toUpperCase()} ${path}\``, safe(summary)]),
  );
  return `# JSON over HTTP\n\nFields are those of the messages. <a href="/openapi.json" target="_self">The OpenAPI description</a>.\n\n${table(['route', 'what it does'], rows)}`;
}
