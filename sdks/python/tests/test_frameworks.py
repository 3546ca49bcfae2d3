"""Tests the adapters with the frameworks' real packages, the scripted model at MODEL_URL and the gateway at ETUDE_ADDRESS."""

from __future__ import annotations

import asyncio
import os
import unittest
import uuid
from typing import Annotated, Any, TypedDict

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from openai import AsyncOpenAI, OpenAI

import etude.langgraph
import etude.openai_agents

MODEL_URL = os.environ["MODEL_URL"]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _ask(state: State) -> dict[str, Any]:
    """Calls the scripted model over OpenAI's protocol."""
    wire = []
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            wire.append({"role": "tool", "content": message.text, "tool_call_id": message.tool_call_id})
        elif isinstance(message, AIMessage):
            wire.append({"role": "assistant", "content": message.text})
        else:
            wire.append({"role": "user", "content": message.text})
    answer = OpenAI(base_url=MODEL_URL, api_key="none").chat.completions.create(model="scripted", messages=wire).choices[0].message
    calls = [{"id": call.id, "name": call.function.name, "args": {"code": "6 * 7"}} for call in answer.tool_calls or []]
    return {"messages": [AIMessage(content=answer.content or "", tool_calls=calls)]}


class LangGraph(unittest.TestCase):
    def test_runs_code_as_a_tool_of_a_graph(self) -> None:
        graph = StateGraph(State)
        graph.add_node("ask", _ask)
        graph.add_node("tools", ToolNode([etude.langgraph.python_tool()]))
        graph.add_edge(START, "ask")
        graph.add_conditional_edges("ask", tools_condition, {"tools": "tools", END: END})
        graph.add_edge("tools", "ask")
        answer = graph.compile().invoke({"messages": [HumanMessage("Use the tool.")]})
        self.assertEqual([type(one).__name__ for one in answer["messages"]], ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage"])
        self.assertEqual(answer["messages"][-1].content, "The tool said 42.")

    def test_keeps_items_in_a_store(self) -> None:
        store = etude.langgraph.EtudeStore(agent=f"agent-{uuid.uuid4().hex[:8]}")
        ada = ("users", "ada")
        store.put(ada, "colour", {"likes": "blue"})
        store.put(ada, "colour", {"likes": "green"})
        store.put(("users", "bob"), "colour", {"likes": "green"})
        item = store.get(ada, "colour")
        assert item is not None
        self.assertEqual((item.namespace, item.value), (ada, {"likes": "green"}))
        self.assertEqual(len(store.search(("users",))), 2)
        self.assertEqual([one.namespace for one in store.search(ada, query="colour likes green")], [ada])
        self.assertEqual(store.list_namespaces(prefix=("users",)), [("users", "ada"), ("users", "bob")])
        store.delete(ada, "colour")
        self.assertIsNone(store.get(ada, "colour"))
        self.assertIsNotNone(store.get(("users", "bob"), "colour"))


class OpenAIAgents(unittest.TestCase):
    def test_runs_code_as_a_tool_of_an_agent(self) -> None:
        set_tracing_disabled(True)
        model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=MODEL_URL, api_key="none"))
        agent = Agent(name="coder", model=model, tools=[etude.openai_agents.python_tool()])
        self.assertEqual(asyncio.run(Runner.run(agent, "Use the tool.")).final_output, "The tool said 42.")


if __name__ == "__main__":
    unittest.main()
