// A fake of hako's console: the real page, and an API with answers that a spec chooses. It is for what a real host cannot be brought to in a
// test: hostile data in every field, a log that was changed, another replica.
import { readFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'

import { root } from './chromium.mjs'

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' }

/** policy is the content security policy of the console. */
export const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/**
 * startFake serves the page with answers: an object of values, or functions of (URL, body), by "path" or "METHOD path" below api/. posted are the bodies
 * that came; send sends an event to every open page, connected waits until there is one.
 */
export async function startFake(answers, port = 0) {
  const streams = new Set()
  const posted = []
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost')
    if (!url.pathname.startsWith('/console/api/')) return file(url.pathname, response)
    const name = decodeURIComponent(url.pathname.slice('/console/api/'.length))
    if (name === 'calls') return stream(response, streams)
    const body = request.method === 'GET' ? undefined : JSON.parse(await text(request) || '{}')
    if (body) posted.push({ name, body, csrf: request.headers['x-hako-csrf'] })
    const answer = answers[`${request.method} ${name}`] ?? answers[name]
    const value = typeof answer === 'function' ? await answer(url, body) : answer
    const status = value === undefined ? 404 : value.status ?? 200
    response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    response.end(JSON.stringify(value ?? { error: { code: 'not_found', text: `no ${name}` } }))
  })
  await new Promise(resolve => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/console/`, posted, answers,
    send(event, data) {
      for (const response of streams) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    },
    async connected() {
      while (streams.size === 0) await new Promise(resolve => setTimeout(resolve, 20))
    },
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function file(pathname, response) {
  const name = pathname.replace(/^\/console\//, '') || 'index.html'
  try {
    const content = await readFile(path.join(root, 'host/frontend/console/page', path.normalize(name)))
    response.writeHead(200, { 'Content-Type': types[path.extname(name)], 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff' })
    response.end(content)
  } catch {
    response.writeHead(404).end()
  }
}

function stream(response, streams) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  response.write('event: hello\ndata: {}\n\n')
  streams.add(response)
  response.on('close', () => streams.delete(response))
}

async function text(request) {
  let body = ''
  for await (const chunk of request) body += chunk
  return body
}
