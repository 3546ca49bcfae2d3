// Tests the adapters with the frameworks' real packages, the scripted model at MODEL_URL and the gateway at ETUDE_ADDRESS.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Etude } from '@etude/client';
import { EtudeStore, pythonTool as graphTool } from '@etude/client/langgraph';
import { pythonTool as agentTool } from '@etude/client/openai-agents';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { Agent, OpenAIChatCompletionsModel, Runner } from '@openai/agents';
import OpenAI from 'openai';

const client = new Etude();
after(() => client.close());
const openai = new OpenAI({ baseURL: process.env.MODEL_URL, apiKey: 'none' });
const ROLES = { human: 'user', ai: 'assistant', tool: 'tool' };

/** Calls the scripted model over OpenAI's protocol. */
async function ask({ messages }) {
  const wire = messages.map((one) => ({ role: ROLES[one.getType()], content: one.text, tool_call_id: one.tool_call_id }));
  const answer = (await openai.chat.completions.create({ model: 'scripted', messages: wire })).choices[0].message;
  const calls = (answer.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => ({ id, name, args: JSON.parse(args) }));
  return { messages: [new AIMessage({ content: answer.content ?? '', tool_calls: calls })] };
}

test('runs code as a tool of a LangGraph graph', async () => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('ask', ask)
    .addNode('tools', new ToolNode([graphTool({ client })]))
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', toolsCondition, ['tools', END])
    .addEdge('tools', 'ask')
    .compile();
  const { messages } = await graph.invoke({ messages: [new HumanMessage('Use the tool.')] });
  assert.deepEqual(
    messages.map((one) => one.getType()),
    ['human', 'ai', 'tool', 'ai'],
  );
  assert.equal(messages.at(-1).content, 'The tool said 42.');
});

test('keeps items in a LangGraph store', async () => {
  const store = new EtudeStore({ client, agent: `agent-${crypto.randomUUID().slice(0, 8)}` });
  const ada = ['users', 'ada'];
  await store.put(ada, 'colour', { likes: 'blue' });
  await store.put(ada, 'colour', { likes: 'green' });
  await store.put(['users', 'bob'], 'colour', { likes: 'green' });
  const item = await store.get(ada, 'colour');
  assert.deepEqual([item.namespace, item.value], [ada, { likes: 'green' }]);
  assert.equal((await store.search(['users'])).length, 2);
  assert.deepEqual(
    (await store.search(ada, { query: 'colour likes green' })).map(({ namespace }) => namespace),
    [ada],
  );
  assert.deepEqual(await store.listNamespaces({ prefix: ['users'] }), [ada, ['users', 'bob']]);
  await store.delete(ada, 'colour');
  assert.equal(await store.get(ada, 'colour'), null);
});

test('runs code as a tool of an OpenAI agent', async () => {
  const model = new OpenAIChatCompletionsModel(openai, 'scripted');
  const runner = new Runner({ tracingDisabled: true });
  const { finalOutput } = await runner.run(new Agent({ name: 'coder', model, tools: [agentTool({ client })] }), 'Use the tool.');
  assert.equal(finalOutput, 'The tool said 42.');
});
