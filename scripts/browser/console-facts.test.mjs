// What the console shows of records, tokens, questions and plugins is what is there: each of these showed something else once.
import assert from 'node:assert/strict'

import { answers } from './answers.mjs'
import { answer } from './chromium.mjs'
import { opened } from './opened.mjs'

opened('the tool of a record is a link with its name, and a decision leads to its reason and its rule', { hash: '#/audit' }, async page => {
  await page.locator('tbody .opener').first().click()
  const dialog = page.getByRole('dialog')
  const tool = dialog.locator('dt', { hasText: 'Tool' }).locator('..').getByRole('link')
  assert.equal(await tool.textContent(), 'get_weather')
  assert.match(await tool.getAttribute('href'), /tool=get_weather/)
  assert.match(await dialog.getByRole('link', { name: 'Why?' }).getAttribute('href'), /^#\/policy\/explain\?tool=get_weather&user=aki%40example.com&frontend=mcp-http$/)
})

const twice = { name: 'ci', user: 'ci', state: 'valid', setting: 'http.auth.tokens' }
opened('two tokens of one name are two rows, and a use that is not recorded is not none', {
  hash: '#/tokens', more: { tokens: { items: [twice, { ...twice, state: 'expired' }, { id: 'hako_unused', name: 'new', user: 'new', state: 'valid' }] } },
}, async page => {
  const rows = page.locator('.tokens tbody').first().locator('tr')
  await rows.nth(2).waitFor()
  assert.deepEqual(await rows.locator('td:nth-child(5)').allTextContents(), ['not recorded', 'not recorded', 'never'])
  assert.deepEqual(await rows.locator('.badge').allTextContents(), ['valid', 'expired', 'valid'])
})

opened('an answered question shows what was asked as long as it keeps its place', {
  hash: '#/approvals', more: { 'POST approvals/apr_1': { answer: 'yes' } },
}, async page => {
  const first = page.locator('.question').first()
  await first.getByRole('button', { name: 'Allow this call' }).hover()
  await answer(first, 'Allow this call')
  await page.locator('.question.answered').waitFor()
  assert.ok(await first.locator('.facts').first().isVisible(), 'the card is empty')
  await page.mouse.move(1, 1)
  await first.locator('.facts').first().waitFor({ state: 'detached' })
})

const asked = { name: 'delete_file', plugin: 'files', outcome: 'asked', decision: 'ask', who: { user: 'yui', frontend: 'mcp-http' }, type: 'tools/call', time: '2026-11-20T12:00:00Z' }
opened('the two calls of a client without a session are one question', {
  hash: '#/approvals', more: { audit: { items: [
    { ...asked, seq: 9, outcome: 'ok', approval: { id: 'apr_a', answer: 'yes', by: 'yui' } },
    { ...asked, seq: 8, approval: { id: 'apr_a', answer: 'yes', by: 'yui' } },
    { ...asked, seq: 7, approval: { id: 'apr_b', answer: 'yes', by: 'aki' } },
    { ...asked, seq: 6, approval: { id: 'apr_c', answer: 'no', by: 'aki' } },
  ] } },
}, async page => {
  const rows = page.locator('.history tbody tr')
  await rows.nth(2).waitFor()
  assert.deepEqual(await rows.locator('td:last-child').allTextContents(), ['ok', 'not called again yet', '–'])
})

const pending = { ...answers()['plugins/files'], consent: undefined, state: 'pending' }
opened('a plugin that nobody wants is left out', {
  hash: '#/plugins/files', more: { 'plugins/files': pending, 'POST plugins/files/revoke': {} },
}, async (page, host) => {
  await page.getByRole('button', { name: 'Not wanted' }).click()
  await page.getByRole('dialog').getByText('It can be approved at any time.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Not wanted' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.deepEqual(host.posted.map(({ name, body }) => [name, body]), [['plugins/files/revoke', { digest: pending.digest }]])
})

for (const height of [500, 700]) {
  opened(`the way out is in view in a window of ${height} pixels`, {}, async page => {
    await page.setViewportSize({ width: 1360, height })
    const { y, height: tall } = await page.getByRole('button', { name: 'Sign out', exact: true }).boundingBox()
    assert.ok(y + tall <= height, `it ends at ${y + tall}`)
  })
}
