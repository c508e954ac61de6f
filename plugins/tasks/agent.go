package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

type agent struct {
	ID        string `json:"agent_id"`
	Name      string `json:"name"`
	Role      string `json:"role,omitempty"`
	Expertise string `json:"expertise,omitempty"`
	OpenTasks int    `json:"open_tasks"`
	CreatedAt string `json:"created_at"`
}

const agentColumns = `id AS agent_id, name, role, expertise, created_at,
	(SELECT count(*) FROM tasks WHERE assignee_id = agents.id AND status NOT IN ('done', 'cancelled')) AS open_tasks`

func agentByID(ctx context.Context, id string) (*agent, error) {
	return one[agent](ctx, agents, "SELECT "+agentColumns+" FROM agents WHERE id = ?", id)
}

type agentArgs struct {
	AgentID string `json:"agent_id"`
}

func getAgentProfile(ctx context.Context, in agentArgs) (*agent, error) {
	return agentByID(ctx, in.AgentID)
}

type agentPage struct {
	extent
	Agents []agent `json:"agents"`
}

func listAgents(ctx context.Context, in paging) (out agentPage, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) (err error) {
		out.Agents, out.extent, err = list[agent](ctx, in, agentColumns, "agents", "seq")
		return err
	})
	return out, err
}

type newAgent struct {
	ID        string `json:"agent_id"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Expertise string `json:"expertise"`
}

func registerAgent(ctx context.Context, in newAgent) (*agent, error) {
	id, err := agents.add(ctx, in.ID,
		"INSERT INTO agents (id, name, role, expertise, created_at) VALUES (?, ?, ?, ?, ?)",
		in.Name, in.Role, in.Expertise, now())
	if err != nil {
		return nil, err
	}
	changed(ctx, "agent://"+id)
	return agentByID(ctx, id)
}
