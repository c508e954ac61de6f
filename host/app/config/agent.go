package config

import "github.com/hako-run/hako/host/frontend/agent"

func agentTable(s *agent.Spec) []setting {
	return []setting{
		{key: "agent.baseUrl", value: &s.BaseURL},
		{key: "agent.workspace", value: &s.Workspace},
		{key: "agent.key", value: &s.Key},
		{key: "agent.agents", value: &s.Agents},
		{key: "agent.environments", value: &s.Environments},
		{key: "agent.sessions", value: &s.Sessions},
		{key: "agent.tenant", value: &s.Tenant},
		{key: "agent.user", value: &s.User},
		{key: "agent.follow", value: &s.Follow, fallback: agent.FollowStream,
			oneOf: []string{agent.FollowStream, agent.FollowPoll}},
		{key: "agent.poll", value: &s.Poll, fallback: "2s"},
		{key: "agent.parallel", value: &s.Parallel, fallback: "8"},
		{key: "agent.timeout", value: &s.Timeout, fallback: "2m"},
		{key: "agent.maxResult", value: &s.MaxResult, fallback: "100KiB"},
		{key: "agent.unknownTools", value: &s.Unknown, fallback: agent.UnknownRefuse,
			oneOf: []string{agent.UnknownRefuse, agent.UnknownLeave}},
	}
}
