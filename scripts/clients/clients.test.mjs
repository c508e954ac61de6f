// Real clients against bin/hako: what a user of the README does, in both modes of MCP, over stdio and HTTP.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'

import { StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Provider } from 'oidc-provider'

import { account, connect, env, hako, modes, serve } from './hako.mjs'

const inspector = path.join(import.meta.dirname, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const run = promisify(execFile)

const over = {
  stdio: cwd => new StdioClientTransport({ command: hako, args: ['serve', '--stdio'], env, cwd, stderr: 'ignore' }),
  http: (_, url) => new StreamableHTTPClientTransport(new URL(url)),
}

describe('the TypeScript SDK', () => {
  let server
  before(async () => { server = await serve() })
  after(() => server.stop())

  for (const [transport, open] of Object.entries(over)) {
    for (const mode of Object.keys(modes)) {
      test(`${transport}, ${mode}`, async () => {
        const client = await connect(open(server.cwd, server.url), mode)
        const names = (await client.listTools()).tools.map(tool => tool.name)
        assert.ok(names.includes('get_weather') && names.includes('file_read'), names.join())
        const weather = await client.callTool({ name: 'get_weather', arguments: { location: '東京', date: 'tomorrow' } })
        assert.ok(!weather.isError && weather.content[0].text.includes('東京'), JSON.stringify(weather))
        const note = `${transport}-${mode}.txt`
        const written = await client.callTool({ name: 'file_write', arguments: { path: note, content: 'こんにちは' } })
        assert.ok(!written.isError, JSON.stringify(written))
        const read = await client.callTool({ name: 'file_read', arguments: { path: note } })
        assert.equal(read.structuredContent.content, 'こんにちは')
        assert.equal(await readFile(path.join(server.cwd, 'workspace', note), 'utf8'), 'こんにちは')
        const refused = await client.callTool({ name: 'file_read', arguments: { path: '../../etc/passwd' } })
        assert.ok(refused.isError, JSON.stringify(refused))
        const wrong = await client.callTool({ name: 'file_read', arguments: { pathh: 'x' } })
        assert.ok(wrong.isError && wrong.content[0].text.includes('path'), JSON.stringify(wrong))
        await assert.rejects(client.callTool({ name: 'absent', arguments: {} }))
        await client.close()
      })
    }
  }
})

describe('code mode and toolsets', () => {
  let server
  before(async () => {
    server = await serve([], {
      'hako.yaml': `
shipped: {enabled: true, mounts: {workspace: workspace}}
upstreams: servers.json
mcp: {maxResult: 8KiB}
toolsets:
  search: {tools: 12}
  sets:
    weather:
      tools: [{tool: get_weather, rename: osaka_weather, fix: {location: 大阪}}, run_code, find_tools]
    pinned: {tools: [{tool: file_read, pin: true}, "*"]}
    others: {tools: ["*"], for: {users: [nobody]}}
`,
      'servers.json': JSON.stringify({ mcpServers: { hangs: { command: 'sleep', args: ['1000'] } } }),
    })
    await run(hako, ['plugin', 'approve', 'code', '--yes'], { cwd: server.cwd, env })
  })
  after(() => server.stop())

  const at = async set => connect(new StreamableHTTPClientTransport(new URL(`${server.url}${set}`)), 'legacy')
  const names = async client => (await client.listTools()).tools.map(tool => tool.name).sort()
  const call = async (client, name, args) => {
    const result = await client.callTool({ name, arguments: args })
    return { ...result, text: result.content.map(block => block.text ?? '').join('\n') }
  }
  /** coded waits until the host has taken up the consent to the plugin code. */
  const coded = async client => {
    while (!(await names(client)).includes('run_code')) await new Promise(resolve => setTimeout(resolve, 50))
  }

  test('a long list is searched, and a server that hangs does not hold it up', async () => {
    const client = await at('')
    await coded(client)
    assert.deepEqual(await names(client), ['call_tool', 'find_tools', 'read_result', 'run_code'])
    const found = await call(client, 'find_tools', { query: '天気', limit: 1 })
    assert.match(found.text, /^1 of \d+ tools:\n\n\/\*\* .*\*\/\ntools\.get_weather\(args: \{/)
    const weather = await call(client, 'call_tool', { name: 'get_weather', arguments: { location: '東京' } })
    assert.ok(!weather.isError && weather.text.includes('東京'), weather.text)
    const program = await call(client, 'run_code', { code: '```js\n(await Promise.all(["東京", "大阪"].map(location => tools.get_weather({location})))).map(w => w.location.prefecture);\n```' })
    assert.equal(program.text, '["東京都","大阪府"]')
    for (const [code, says] of [
      ['const a: string = "x"; return a', /^SyntaxError: .*\nThe code must be plain JavaScript: no types of TypeScript/],
      ['await tools.get_wether({location: "東京"})', /did you mean get_weather\?[^]*tools\.get_weather\(args: \{/],
      ['await get_weather({location: "東京"})', /^ReferenceError: .*\n.*tools are called as tools\.NAME/],
      ['await tools.hangs_anything({})', /unknown tool/],
    ]) {
      const failed = await call(client, 'run_code', { code })
      assert.ok(failed.isError, failed.text)
      assert.match(failed.text, says)
    }
    await client.close()
  })

  test('each set has an endpoint, and pinned tools stay listed', async () => {
    const osaka = await at('/weather')
    await coded(osaka)
    assert.deepEqual(await names(osaka), ['find_tools', 'osaka_weather', 'read_result', 'run_code'])
    const weather = await call(osaka, 'osaka_weather', {})
    assert.ok(!weather.isError && weather.text.includes('大阪'), weather.text)
    const tried = await call(osaka, 'osaka_weather', { location: '東京' })
    assert.ok(tried.isError && tried.text.includes('location'), tried.text)
    assert.equal((await call(osaka, 'run_code', { code: '(await tools.osaka_weather()).location.prefecture' })).text, '大阪府')
    assert.match((await call(osaka, 'run_code', { code: 'tools.get_weather({location: "東京"})' })).text, /unknown tool "get_weather"/)
    const described = (await osaka.listTools()).tools.find(tool => tool.name === 'run_code').description
    assert.ok(described.includes('tools.osaka_weather(args: {') && !described.includes('file_read'), described)
    await osaka.close()
    const pinned = await at('/pinned')
    assert.ok((await names(pinned)).includes('file_read'))
    await pinned.close()
    await assert.rejects(at('/absent'), /There is no toolset of this name/)
    await assert.rejects(at('/others'), { status: 403 })
  })

  test('a large result is kept, read in parts, and filtered by a program', async () => {
    const client = await at('')
    await coded(client)
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i}: ${'x'.repeat(20)}`).join('\n')
    await call(client, 'call_tool', { name: 'file_write', arguments: { path: 'large.txt', content: lines } })
    const kept = await client.callTool({ name: 'call_tool', arguments: { name: 'file_read', arguments: { path: 'large.txt' } } })
    const link = kept.content.find(block => block.type === 'resource_link')
    assert.ok(link, JSON.stringify(kept).slice(0, 500))
    const whole = await client.readResource({ uri: link.uri })
    assert.ok(whole.contents[0].text.includes('line 1999: '), 'the resource is not whole')
    const id = link.uri.split('/').pop()
    assert.ok((await call(client, 'read_result', { id, offset: 100, limit: 2 })).text.length < 8192)
    const counted = await call(client, 'run_code', { code: `JSON.stringify(await tools.read_result({id: "${id}"})).split("line ").length - 1` })
    assert.equal(counted.text, '2000')
    await client.close()
  })
})

describe('the Inspector', () => {
  let server
  before(async () => { server = await serve() })
  after(() => server.stop())

  const inspect = async (...args) => {
    const { stdout } = await run(process.execPath, [inspector, '--cli', ...args, '--format', 'json'], { env, cwd: server.cwd })
    return stdout
  }
  for (const mode of Object.keys(modes)) {
    test(`HTTP, ${mode}`, async () => {
      const http = [server.url, '--transport', 'http', '--protocol-era', mode]
      assert.match(await inspect(...http, '--method', 'tools/list'), /get_weather/)
      assert.match(await inspect(...http, '--method', 'tools/call', '--tool-name', 'get_weather', '--tool-arg', 'location=大阪'), /大阪/)
    })
    test(`stdio, ${mode}`, async () => {
      const stdio = [hako, 'serve', '--stdio', '--protocol-era', mode]
      assert.match(await inspect(...stdio, '--method', 'tools/list'), /file_read/)
    })
  }
})

// People are asked about calls by their own client, in the way of its mode. What nobody may call is not listed.
describe('approvals', () => {
  const rules = `version: 1
rules:
  - {name: ask before writing, action: ask, tools: [file_write]}
  - {name: never, action: deny, tools: [delete_file]}
`
  let server
  before(async () => {
    server = await serve([], { 'hako.policy.yaml': rules })
  })
  after(() => server.stop())

  for (const [transport, open] of Object.entries(over)) {
    for (const mode of Object.keys(modes)) {
      test(`${transport}, ${mode}`, async () => {
        const client = await connect(open(server.cwd, server.url), mode, { capabilities: { elicitation: { form: {} } } })
        const asked = []
        let answer
        client.setRequestHandler('elicitation/create', async request => {
          asked.push(request.params)
          return answer
        })
        const names = (await client.listTools()).tools.map(tool => tool.name)
        assert.ok(names.includes('file_write') && !names.includes('delete_file'), names.join())

        const note = `approved-${transport}-${mode}.txt`
        const write = () => client.callTool({ name: 'file_write', arguments: { path: note, content: 'yes' } })
        for (answer of [{ action: 'decline' }, { action: 'cancel' }, { action: 'accept', content: { approve: false } }]) {
          const refused = await write()
          assert.ok(refused.isError && refused.content[0].text.includes('it was refused'), JSON.stringify(refused))
        }
        await assert.rejects(readFile(path.join(server.cwd, 'workspace', note)))

        answer = { action: 'accept', content: { approve: true } }
        const written = await write()
        assert.ok(!written.isError, JSON.stringify(written))
        assert.equal(await readFile(path.join(server.cwd, 'workspace', note), 'utf8'), 'yes')
        assert.equal(asked.length, 4)
        assert.match(asked[3].message, new RegExp(note))

        const denied = await client.callTool({ name: 'delete_file', arguments: { path: note } })
        assert.ok(denied.isError && denied.content[0].text.includes('rule "never"'), JSON.stringify(denied))
        await client.close()
      })
    }
  }

  for (const [transport, open] of Object.entries(over)) {
    test(`${transport}, without forms`, async () => {
      const client = await connect(open(server.cwd, server.url), 'modern')
      const refused = await client.callTool({ name: 'file_write', arguments: { path: 'x.txt', content: 'x' } })
      assert.ok(refused.isError && refused.content[0].text.includes('hako approvals'), JSON.stringify(refused))
      await client.close()
    })
  }
})

// The life of a plugin file, seen by a client that stays connected.
describe('a plugin in the folder', () => {
  for (const mode of Object.keys(modes)) {
    test(mode, async () => {
      const folder = await mkdtemp(path.join(tmpdir(), 'hako-plugins-'))
      const server = await serve(['--plugins', folder])
      const plugin = path.join(folder, 'greeter.wasm')
      try {
        const work = path.join(server.cwd, 'work')
        await mkdir(work)
        await run(hako, ['plugin', 'new', 'greeter', '--lang', 'go'], { cwd: work })
        await run(hako, ['plugin', 'build', 'greeter'], { cwd: work })
        const built = path.join(work, 'greeter', 'dist', 'greeter.wasm')

        let waiting = []
        const client = await connect(new StreamableHTTPClientTransport(new URL(server.url)), mode, {
          listChanged: { tools: { onChanged: (_, tools) => { for (const wake of waiting.splice(0)) wake(tools) } } },
        })
        const names = async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map(tool => tool.name)
        // until waits for list_changed notifications until the list holds.
        const until = async holds => {
          for (let list = await names(); !holds(list); list = await names()) {
            await Promise.race([new Promise(resolve => waiting.push(resolve)), new Promise(resolve => setTimeout(resolve, 1000))])
          }
        }
        const hello = async () => (await client.callTool({ name: 'greeter', arguments: { name: 'Aki' } })).content[0].text

        await copyFile(built, plugin) // dropped in: pending, hidden
        await new Promise(resolve => setTimeout(resolve, 1500))
        assert.ok(!(await names()).includes('greeter'))
        await assert.rejects(client.callTool({ name: 'greeter', arguments: { name: 'Aki' } }))

        await run(hako, ['plugin', 'approve', 'greeter', '--yes', '--plugins', folder], { cwd: server.cwd, env })
        await until(list => list.includes('greeter'))
        assert.match(await hello(), /Aki/)

        await writeFile(plugin, 'not Wasm') // broken: the old one stays
        await new Promise(resolve => setTimeout(resolve, 1500))
        assert.match(await hello(), /Aki/)

        await copyFile(built, path.join(folder, 'new'))
        await rename(path.join(folder, 'new'), plugin) // replaced by rename
        await new Promise(resolve => setTimeout(resolve, 1500))
        assert.match(await hello(), /Aki/)

        await rm(plugin) // removed: gone
        await until(list => !list.includes('greeter'))
        await client.close()
      } finally {
        await server.stop()
        await rm(folder, { recursive: true })
      }
    })
  }
})

// People log in with the company's account: a maintained OpenID Connect provider, which knows hako alone, and clients that
// find everything out by themselves.
describe('the company login', () => {
  let server, listener
  before(async () => {
    server = await serve([], async port => {
      const base = `http://127.0.0.1:${port}`
      listener = createServer()
      await new Promise(resolve => listener.listen(0, '127.0.0.1', resolve))
      const issuer = `http://127.0.0.1:${listener.address().port}`
      const provider = new Provider(issuer, {
        clients: [{ client_id: 'hako', client_secret: 'a-secret-of-hako', redirect_uris: [`${base}/oauth/callback`] }],
        claims: { email: ['email', 'email_verified'], profile: ['name'], openid: ['sub', 'groups'] },
        conformIdTokenClaims: false,
        findAccount: (_, id) => ({
          accountId: id,
          claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: ['staff'] }),
        }),
      })
      listener.on('request', provider.callback())
      return {
        'client.secret': 'a-secret-of-hako\n',
        'hako.yaml': `shipped: {enabled: true}
http:
  auth:
    oauth: {resource: "${base}/mcp"}
    proxy: {issuer: "${issuer}", clientId: hako, clientSecret: {file: client.secret}}
`,
      }
    })
  })
  after(async () => {
    listener.closeAllConnections()
    listener.close()
    await server.stop()
  })

  // login does what a person does in a browser, from the client's link until it leads back to the client.
  async function login(start, back) {
    const jars = {}
    let url = new URL(start)
    const pages = []
    const open = async (init = {}) => {
      for (;;) {
        if (url.href.startsWith(back)) return undefined
        const jar = jars[url.origin] ??= new Map()
        const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
        const response = await fetch(url, { redirect: 'manual', ...init, headers: { ...init.headers, cookie } })
        for (const line of response.headers.getSetCookie()) {
          const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
          if (value) jar.set(name, value)
          else jar.delete(name)
        }
        if (response.status < 300 || response.status >= 400) return response
        url = new URL(response.headers.get('location'), url)
        init = {}
      }
    }
    for (let response = await open(); response; ) {
      const page = await response.text()
      assert.equal(response.status, 200, `${url}: ${page}`)
      pages.push(page)
      const form = new URLSearchParams()
      for (const [, attributes] of page.matchAll(/<input ([^>]*)>/g)) {
        const name = /name="([^"]*)"/.exec(attributes)?.[1]
        if (name) form.set(name, /value="([^"]*)"/.exec(attributes)?.[1] ?? 'aki')
      }
      if (page.includes('name="answer"')) form.set('answer', 'yes')
      url = new URL(/<form[^>]* action="([^"]*)"/.exec(page)[1], url)
      response = await open({ method: 'POST', body: form })
    }
    return { url, pages }
  }

  for (const mode of Object.keys(modes)) {
    test(mode, async () => {
      const authProvider = account('http://127.0.0.1:3999/callback')
      const { kept } = authProvider
      const transport = () => new StreamableHTTPClientTransport(new URL(server.url), { authProvider })
      const first = transport()
      await assert.rejects(connect(first, mode), error => error instanceof UnauthorizedError || error.cause instanceof UnauthorizedError)
      const { url, pages } = await login(kept.link, authProvider.redirectUrl)
      assert.match(pages[0], /The TypeScript SDK/)
      assert.equal(url.searchParams.get('state'), 'a-state-of-the-client')
      await first.finishAuth(url.searchParams)

      const client = await connect(transport(), mode)
      const weather = await client.callTool({ name: 'get_weather', arguments: { location: '東京', date: 'tomorrow' } })
      assert.ok(!weather.isError, JSON.stringify(weather))
      await client.close()

      const before = kept.tokens
      kept.tokens = { ...before, access_token: 'hako_at_expired' } // the client refreshes by itself
      const again = await connect(transport(), mode)
      assert.ok((await again.listTools()).tools.length > 0)
      assert.notEqual(kept.tokens.refresh_token, before.refresh_token)
      await again.close()

      // Somebody uses the old refresh token: the login ends.
      const metadata = await (await fetch(new URL('/.well-known/oauth-authorization-server', server.url))).json()
      const replayed = await fetch(metadata.token_endpoint, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: before.refresh_token, client_id: kept.client.client_id }),
      })
      assert.equal(replayed.status, 400)
      const refused = await fetch(server.url, { method: 'POST', headers: { authorization: `Bearer ${kept.tokens.access_token}` }, body: '{}' })
      assert.equal(refused.status, 401)
      assert.match(refused.headers.get('www-authenticate'), /resource_metadata=/)
    })
  }
})
