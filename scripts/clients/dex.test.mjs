// The company login with a real Dex and a real browser: a client of the TypeScript SDK finds everything out by itself, and a person signs in.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'

import { startChromium } from '../browser/chromium.mjs'
import { account, connect, serve } from './hako.mjs'

const dex = process.env.DEX ?? path.resolve(import.meta.dirname, '../../dist/dex')
const secret = 'a-secret-of-hako'
const password = 'password' // The hash below is Dex's own example of it.

// The connector "Company" has no password, and says that its only person is in the group "authors". People with a password have no groups.
const dexConfiguration = (issuer, address, callback) => `
issuer: ${issuer}
storage: {type: memory}
web: {http: "${address}"}
oauth2: {skipApprovalScreen: true}
staticClients: [{id: hako, name: hako, secret: ${secret}, redirectURIs: ["${callback}"]}]
connectors: [{type: mockCallback, id: company, name: Company}]
enablePasswordDB: true
staticPasswords:
  - {email: aki@example.com, username: aki, userID: "1", hash: "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"}
`

const configuration = (base, issuer) => `shipped: {enabled: true, mounts: {workspace: .}}
http:
  auth:
    oauth: {resource: "${base}/mcp"}
    proxy:
      issuer: "${issuer}"
      clientId: hako
      clientSecret: {file: client.secret}
      scopes: [profile, email, groups]
`

const policy = `version: 1
default: allow
rules:
  - {name: authors may write, action: allow, tools: [file_write], groups: [authors]}
  - {name: others only read, action: deny, tools: [file_write], reason: authors alone may write}
`

/** startDex starts Dex for a hako with this callback. */
async function startDex(callback) {
  const folder = await mkdtemp(path.join(tmpdir(), 'hako-dex-'))
  const address = `127.0.0.1:${20000 + Math.floor(Math.random() * 12000)}`
  const issuer = `http://${address}/dex`
  const file = path.join(folder, 'dex.yaml')
  await writeFile(file, dexConfiguration(issuer, address, callback))
  const child = spawn(dex, ['serve', file], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => { log += chunk })
  const exited = new Promise(resolve => child.once('exit', resolve))
  for (;;) {
    const found = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => null)
    if (found?.ok) break
    if (child.exitCode !== null) throw new Error(`Dex did not start:\n${log}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  return {
    issuer,
    async stop() {
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true })
    },
  }
}

/** listen is a native client's listener on a loopback port, which the browser is led back to. */
async function listen() {
  const came = []
  const listener = createServer((request, response) => {
    came.push(new URL(request.url, 'http://127.0.0.1'))
    response.setHeader('Content-Type', 'text/html')
    response.end('<title>client</title><p id="done">You can close this window.</p>')
  })
  await new Promise(resolve => listener.listen(0, '127.0.0.1', resolve))
  listener.unref()
  return {
    came,
    url: `http://127.0.0.1:${listener.address().port}/callback`,
    close() {
      listener.closeAllConnections()
      listener.close()
    },
  }
}

/** signIn lets a new client send a person to the browser, who consents and does at Dex what they do. It returns the account of the client. */
async function signIn(atDex) {
  const listener = await listen()
  const authProvider = account(listener.url)
  const first = new StreamableHTTPClientTransport(new URL(server.url), { authProvider })
  await assert.rejects(connect(first, 'modern'), error => error instanceof UnauthorizedError || error.cause instanceof UnauthorizedError)
  const page = await chromium.open(authProvider.kept.link.href)
  await page.getByText('The TypeScript SDK').first().waitFor() // hako asks whether this client may act for the person
  await page.locator('button[value=yes]').click()
  await atDex(page)
  await page.locator('#done').waitFor()
  await page.context().close()
  listener.close()
  const returned = listener.came.find(url => url.pathname === '/callback').searchParams
  assert.equal(returned.get('state'), 'a-state-of-the-client')
  await first.finishAuth(returned)
  return authProvider
}

async function withPassword(page) {
  await page.getByText('Log in with Email').click()
  await page.locator('#login').fill('aki@example.com')
  await page.locator('#password').fill('wrong')
  await page.locator('#submit-login').click()
  await page.locator('#login-error').waitFor()
  await page.locator('#password').fill(password)
  await page.locator('#submit-login').click()
}

const asCompany = page => page.getByText('Log in with Company').click()

const call = async (authProvider, name, input) => {
  const client = await connect(new StreamableHTTPClientTransport(new URL(server.url), { authProvider }), 'modern')
  const result = await client.callTool({ name, arguments: input })
  await client.close()
  return result
}

let chromium, provider, server
describe('the company login with Dex', () => {
  before(async () => {
    chromium = await startChromium()
    server = await serve([], async port => {
      const base = `http://127.0.0.1:${port}`
      provider = await startDex(`${base}/oauth/callback`)
      return { 'client.secret': `${secret}\n`, 'hako.yaml': configuration(base, provider.issuer), 'hako.policy.yaml': policy }
    })
  })
  after(async () => {
    await server.stop()
    await provider.stop()
    await chromium.close()
  })

  test('a person signs in with a browser and a password, and the client has PKCE', async () => {
    const authProvider = await signIn(withPassword)
    const asked = authProvider.kept.link.searchParams
    assert.equal(asked.get('code_challenge_method'), 'S256')
    assert.notEqual(asked.get('code_challenge'), authProvider.kept.verifier)
    const weather = await call(authProvider, 'get_weather', { location: '東京', date: 'tomorrow' })
    assert.ok(!weather.isError && weather.content[0].text.includes('東京'), JSON.stringify(weather))
  })

  test('nobody is led to a redirect URI that is not registered', async () => {
    const listener = await listen()
    const authProvider = account(listener.url)
    await assert.rejects(connect(new StreamableHTTPClientTransport(new URL(server.url), { authProvider }), 'modern'))
    const link = new URL(authProvider.kept.link)
    link.searchParams.set('redirect_uri', listener.url.replace('/callback', '/elsewhere'))
    const refused = await fetch(link, { redirect: 'manual' })
    assert.equal(refused.status, 400)
    assert.match(await refused.text(), /redirect_uri/)

    // Dex knows hako's own address alone.
    const upstream = new URL(`${provider.issuer}/auth/company`)
    upstream.search = new URLSearchParams({ client_id: 'hako', response_type: 'code', scope: 'openid', redirect_uri: listener.url })
    assert.equal((await fetch(upstream, { redirect: 'manual' })).status, 400)
    assert.deepEqual(listener.came, [])
    listener.close()
  })

  test('the client refreshes its token by itself, and an old refresh token ends the login', async () => {
    const authProvider = await signIn(withPassword)
    const { kept } = authProvider
    const before = kept.tokens
    kept.tokens = { ...before, access_token: 'hako_at_expired' }
    assert.ok(!(await call(authProvider, 'get_weather', { location: '大阪', date: 'tomorrow' })).isError)
    assert.notEqual(kept.tokens.refresh_token, before.refresh_token)

    const metadata = await (await fetch(new URL('/.well-known/oauth-authorization-server', server.url))).json()
    const replayed = await fetch(metadata.token_endpoint, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: before.refresh_token, client_id: kept.client.client_id }),
    })
    assert.equal(replayed.status, 400)
    const refused = await fetch(server.url, { method: 'POST', headers: { authorization: `Bearer ${kept.tokens.access_token}` }, body: '{}' })
    assert.equal(refused.status, 401)
  })

  test('the groups of Dex reach the policy', async () => {
    const author = await call(await signIn(asCompany), 'file_write', { path: 'author.txt', content: 'x' })
    assert.ok(!author.isError, JSON.stringify(author))
    const other = await call(await signIn(withPassword), 'file_write', { path: 'other.txt', content: 'x' })
    assert.ok(other.isError && other.content[0].text.includes('rule "others only read"'), JSON.stringify(other))
  })
})
