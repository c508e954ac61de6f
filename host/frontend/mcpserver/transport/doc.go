// Package transport is the HTTP transport of MCP (streamable HTTP) for all protocol versions.
//
// Decode reads the body of a POST request once; a tools/call in its usual form becomes a Call, which the server answers
// without the SDK. A Stream answers the requests of one HTTP request, with a JSON body or with server-sent events, and
// a Response is the ResponseWriter below it. A Conn connects the SDK's server to a client for all other messages: it
// implements the SDK's Transport and Connection. The functions Check... compare headers with the body.
package transport
