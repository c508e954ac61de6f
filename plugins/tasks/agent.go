package main

import (
	"context"
)

type agent struct {
	ID        string `json:"agent_id"`
	Name      string `json:"name"`
	Role      string `json:"role,omitempty"`
	Expertise string `json:"expertise,omitempty"`
	OpenTasks int    `json:"open_tasks"`
	CreatedAt string `json:"created_at"`
}

const selectAgent = `SELECT id AS agent_id, name, role, expertise, created_at,
	(SELECT count(*) FROM tasks WHERE assignee_id = agents.id AND status NOT IN ('done', 'cancelled')) AS open_tasks
	FROM agents `

func agentByID(ctx context.Context, id string) (*agent, error) {
	return one[agent](ctx, agents, selectAgent+"WHERE id = ?", id)
}

type agentArgs struct {
	AgentID string `json:"agent_id"`
}

func getAgentProfile(ctx context.Context, in agentArgs) (*agent, error) {
	return agentByID(ctx, in.AgentID)
}

type agentPage struct {
	Agents     []agent `json:"agents"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func listAgents(ctx context.Context, in paging) (out agentPage, err error) {
	out.Agents, out.NextCursor, err = page(ctx, agents, in, 50, func(a *agent) string { return a.ID },
		selectAgent+"WHERE "+agents.after()+" ORDER BY seq LIMIT ?2")
	return out, err
}

type newAgent struct {
	ID        string `json:"agent_id"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Expertise string `json:"expertise"`
}

func registerAgent(ctx context.Context, in newAgent) (*agent, error) {
	id, err := agents.add(ctx, in.ID, "INSERT INTO agents (id, name, role, expertise, created_at) VALUES (?, ?, ?, ?, ?)",
		in.Name, in.Role, in.Expertise, now())
	if err != nil {
		return nil, err
	}
	changed(ctx, "agent://"+id)
	return agentByID(ctx, id)
}
