"""Claims about posteriors: they recover known Gaussians, and their densities are those of torch.distributions."""

import math

import pytest
import torch
from torch.distributions import Independent, LowRankMultivariateNormal, Normal

from bacs.posteriors import fisher_diag, flat, gaussian, gaussian_of, kind_of, pack, swag_diag, swag_low_rank, unpack

SHAPES = {"conv.weight": (3, 2, 2), "head.bias": (4,)}
SIZE = 16


def flatten(params):
    return torch.cat([params[name].flatten().double() for name in SHAPES])


def unflatten(vector):
    sizes = [math.prod(shape) for shape in SHAPES.values()]
    return {n: part.reshape(s) for (n, s), part in zip(SHAPES.items(), vector.split(sizes), strict=True)}


def collect(module, rows, **options):
    state = module.init(unflatten(rows[0]), **options)
    for row in rows:
        state = fold(module, state, row)
    return state


def fold(module, state, row):
    """One more row: an iterate, or the gradient of an example."""
    return module.update(state, unflatten(row.square() if module is fisher_diag else row))


@pytest.fixture
def trajectory():
    """Iterates of a Gaussian with three directions of large variance."""
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(SIZE, generator=generator, dtype=torch.float64)
    factor = 0.5 * torch.randn(SIZE, 3, generator=generator, dtype=torch.float64)
    diagonal = 0.05 + 0.1 * torch.rand(SIZE, generator=generator, dtype=torch.float64)
    distribution = LowRankMultivariateNormal(mean, factor, diagonal)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return distribution, distribution.sample((6000,))


def test_swag_diag_recovers_mean_and_variance_of_a_known_gaussian(trajectory):
    truth, rows = trajectory
    state = collect(swag_diag, rows)
    error = (truth.variance / len(rows)).sqrt()
    assert ((flatten(state.mean) - truth.mean).abs() < 5 * error).all()
    torch.testing.assert_close(flatten(swag_diag.variance(state)), truth.variance, rtol=0.1, atol=0)
    assert state.count == len(rows)


def test_swag_diag_moments_equal_those_of_the_trajectory(trajectory):
    _, rows = trajectory
    state = collect(swag_diag, rows[:50])
    torch.testing.assert_close(flatten(state.mean), rows[:50].mean(dim=0), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        flatten(swag_diag.variance(state)), rows[:50].var(dim=0, correction=0), rtol=1e-10, atol=0
    )


def test_swag_low_rank_recovers_the_covariance_of_a_known_gaussian(trajectory):
    truth, rows = trajectory
    state = collect(swag_low_rank, rows, rank=4000)
    q = swag_low_rank.gaussian(state)
    factor = torch.cat([f.flatten(start_dim=1) for f in q.factor.values()], dim=1).T
    covariance = torch.diag(flatten(q.variance)) + factor @ factor.T
    expected = 0.5 * torch.diag(truth.variance) + 0.5 * truth.covariance_matrix
    torch.testing.assert_close(covariance, expected, rtol=0.1, atol=0.05)


def test_small_variances_around_large_weights_survive_float32_iterates():
    generator = torch.Generator().manual_seed(0)
    rows = 1 + 3e-4 * torch.randn(20, SIZE, generator=generator)
    state = collect(swag_diag, rows)
    torch.testing.assert_close(
        flatten(swag_diag.variance(state)), rows.double().var(dim=0, correction=0), rtol=1e-6, atol=0
    )


def test_swag_diag_log_prob_equals_torch_distributions(trajectory):
    _, rows = trajectory
    state = collect(swag_diag, rows[:30])
    expected = Independent(Normal(rows[:30].mean(dim=0), rows[:30].std(dim=0, correction=0)), 1)
    for row in rows[100:105]:
        actual = swag_diag.log_prob(state, unflatten(row))
        torch.testing.assert_close(actual, expected.log_prob(row), rtol=1e-9, atol=0)


def test_swag_low_rank_log_prob_equals_torch_distributions(trajectory):
    _, rows = trajectory
    state = collect(swag_low_rank, rows[:30], rank=8)
    running = torch.stack([row - rows[: i + 1].mean(dim=0) for i, row in enumerate(rows[:30])])[-8:]
    expected = LowRankMultivariateNormal(
        rows[:30].mean(dim=0), running.T / math.sqrt(2 * 7), rows[:30].var(dim=0, correction=0) / 2
    )
    for row in rows[100:105]:
        actual = swag_low_rank.log_prob(state, unflatten(row))
        torch.testing.assert_close(actual, expected.log_prob(row), rtol=1e-9, atol=0)


def test_low_rank_keeps_only_the_last_deviations(trajectory):
    _, rows = trajectory
    state = collect(swag_low_rank, rows[:50])
    assert state.rank == 20
    assert all(d.shape[0] == 20 for d in state.deviations.values())
    last = flatten({name: d[-1] for name, d in state.deviations.items()})
    torch.testing.assert_close(last, rows[49] - rows[:50].mean(dim=0))


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, fisher_diag])
def test_samples_have_the_moments_of_the_posterior(module, trajectory):
    _, rows = trajectory
    state = collect(module, rows[:30])
    generator = torch.Generator().manual_seed(3)
    draws = torch.stack([flatten(module.sample(state, generator)) for _ in range(4000)])
    q = module.gaussian(state)
    variance = flatten(q.variance)
    if q.factor is not None:
        variance = variance + flatten({name: (f**2).sum(dim=0) for name, f in q.factor.items()})
    assert ((draws.mean(dim=0) - flatten(state.mean)).abs() < 5 * (variance / 4000).sqrt()).all()
    torch.testing.assert_close(draws.var(dim=0), variance, rtol=0.15, atol=0)


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank])
@pytest.mark.parametrize("step_length", [1e-6, 0.1, 30.0])
def test_the_proximal_step_minimises_its_definition(module, step_length, trajectory):
    """At the minimum of |v - w|^2 / (2 s) - log q(v), its gradient by autograd vanishes."""
    _, rows = trajectory
    q = module.gaussian(collect(module, rows[:30]))
    start = unflatten(rows[200])
    moved = {n: v.clone().requires_grad_() for n, v in gaussian.proximal(q, start, step_length).items()}
    distance = sum(((moved[n] - start[n]) ** 2).sum() for n in SHAPES) / (2 * step_length)
    (distance - gaussian.log_prob(q, moved)).backward()
    scale = flatten(start).abs().max() / step_length
    assert flatten({n: v.grad for n, v in moved.items()}).abs().max() < 1e-9 * max(1.0, scale)


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank])
def test_a_step_length_by_parameter_minimises_the_weighted_distance(module, trajectory):
    _, rows = trajectory
    q = module.gaussian(collect(module, rows[:30]))
    start = unflatten(rows[200])
    generator = torch.Generator().manual_seed(0)
    lengths = unflatten(torch.rand(SIZE, generator=generator, dtype=torch.float64))
    moved = {n: v.clone().requires_grad_() for n, v in gaussian.proximal(q, start, lengths).items()}
    distance = sum(((moved[n] - start[n]) ** 2 / (2 * lengths[n])).sum() for n in SHAPES)
    (distance - gaussian.log_prob(q, moved)).backward()
    assert flatten({n: v.grad for n, v in moved.items()}).abs().max() < 1e-9


def test_the_proximal_step_is_exact_at_both_ends_and_finite_for_tiny_variances():
    params = unflatten(torch.randn(SIZE, generator=torch.Generator().manual_seed(0)))
    mean = unflatten(torch.randn(SIZE, generator=torch.Generator().manual_seed(1)))
    q = gaussian.Gaussian(mean, unflatten(torch.full((SIZE,), 1e-12)))
    still = gaussian.proximal(q, params, 0.0)
    pinned = gaussian.proximal(q, params, 1e30)
    between = gaussian.proximal(q, params, 1e-6)
    for name in SHAPES:
        assert torch.equal(still[name], params[name])
        assert torch.equal(pinned[name], mean[name])
        assert torch.isfinite(between[name]).all()


def test_the_marginal_of_a_low_rank_gaussian_is_that_of_its_samples_coordinates(trajectory):
    _, rows = trajectory
    q = swag_low_rank.gaussian(collect(swag_low_rank, rows[:30]))
    part = gaussian.marginal(q, {"head.bias": rows.new_zeros(4)})
    factor = torch.cat([f.flatten(start_dim=1) for f in q.factor.values()], dim=1).T
    covariance = (torch.diag(flatten(q.variance)) + factor @ factor.T)[-4:, -4:]
    expected = torch.distributions.MultivariateNormal(flatten(q.mean)[-4:], covariance)
    value = rows[300][-4:]
    torch.testing.assert_close(gaussian.log_prob(part, {"head.bias": value}), expected.log_prob(value))


@pytest.mark.parametrize("module", [flat, swag_diag, swag_low_rank, fisher_diag])
class TestContract:
    """What every posterior promises."""

    def collected(self, module):
        rows = torch.randn(6, SIZE, generator=torch.Generator().manual_seed(0))
        return collect(module, rows), rows

    def test_states_are_never_changed_in_place(self, module):
        state, rows = self.collected(module)
        before = [{n: t.clone() for n, t in f.items()} if isinstance(f, dict) else f for f in state]
        fold(module, state, rows[0] + 5)
        module.log_prob(state, unflatten(rows[0]))
        for old, new in zip(before, state, strict=True):
            if isinstance(old, dict):
                assert all(torch.equal(old[n], new[n]) for n in old)
            else:
                assert old == new

    def test_the_state_keeps_no_reference_to_the_callers_tensors(self, module):
        rows = torch.randn(3, SIZE)
        params = unflatten(rows[0].clone())
        squares = {name: p.square() for name, p in params.items()} if module is fisher_diag else params
        state = module.update(module.init(params), squares)
        for p in (*params.values(), *squares.values()):
            p.fill_(float("nan"))
        assert all(torch.isfinite(t).all() for field in state if isinstance(field, dict) for t in field.values())

    def test_log_prob_is_a_scalar_with_gradients_where_it_depends_on_the_weights(self, module):
        state, rows = self.collected(module)
        params = {n: p.requires_grad_() for n, p in unflatten(rows[1].clone()).items()}
        value = module.log_prob(state, params)
        assert value.shape == ()
        if module is not flat:
            value.backward()
            assert all(torch.isfinite(p.grad).all() and p.grad.any() for p in params.values())

    def test_pack_and_unpack_give_the_state_back(self, module):
        state, _ = self.collected(module)
        again = unpack(*pack(state), state.mean)
        assert kind_of(again) == kind_of(state)
        for old, new in zip(state, again, strict=True):
            if isinstance(old, dict):
                assert all(torch.equal(old[n], new[n]) for n in old)
            else:
                assert old == new


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, fisher_diag])
def test_parameters_of_another_model_are_refused(module):
    rows = torch.randn(6, SIZE, generator=torch.Generator().manual_seed(0))
    state = collect(module, rows)
    with pytest.raises(ValueError, match=r"lacks parameter 'head.bias'"):
        module.update(state, {"conv.weight": rows[0][:12].reshape(3, 2, 2)})
    with pytest.raises(ValueError, match=r"'head.bias' has shape \(2,\), the model's is \(4,\)"):
        module.log_prob(state, unflatten(rows[0]) | {"head.bias": rows[0][:2]})


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, fisher_diag])
@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan")])
def test_min_variance_must_be_positive(module, wrong):
    rows = torch.randn(6, SIZE, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="min_variance must be > 0"):
        module.log_prob(collect(module, rows), unflatten(rows[0]), min_variance=wrong)


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, fisher_diag])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_samples_have_the_type_of_the_parameters_and_run_in_the_model(module, dtype):
    model = torch.nn.Linear(3, 2, dtype=dtype)
    state = module.init(dict(model.named_parameters()))
    for _ in range(3):
        noisy = {n: (p + 0.1 * torch.randn_like(p)).abs() for n, p in model.named_parameters()}
        state = module.update(state, noisy)
    drawn = module.sample(state, torch.Generator().manual_seed(0))
    assert torch.func.functional_call(model, drawn, torch.ones(1, 3, dtype=dtype)).dtype == dtype


def test_min_variance_is_a_floor():
    rows = torch.ones(5, SIZE)
    state = collect(swag_diag, rows)
    q = swag_diag.gaussian(state, min_variance=0.25)
    assert (flatten(q.variance) == 0.25).all()


def test_a_single_iterate_has_no_variance():
    state = collect(swag_diag, torch.ones(1, SIZE))
    with pytest.raises(ValueError, match="at least 2 iterates for a variance, got 1"):
        swag_diag.log_prob(state, unflatten(torch.ones(SIZE)))


def test_a_flat_posterior_is_zero_everywhere_and_cannot_be_sampled():
    state = flat.init(unflatten(torch.zeros(SIZE)))
    assert flat.log_prob(state, unflatten(torch.full((SIZE,), 1e6))) == 0
    assert gaussian_of(state, min_variance=1.0) is None
    with pytest.raises(ValueError, match="cannot be sampled"):
        flat.sample(state, torch.Generator())


def test_what_is_no_posterior_is_refused_with_a_way_out():
    with pytest.raises(TypeError, match=r"bacs.posteriors.flat.init"):
        kind_of("swag")


def test_the_marginal_lies_in_memory_as_the_parameters_do():
    stored = {"weight": torch.randn(4, 3, 2, 2)}
    params = {"weight": stored["weight"].contiguous(memory_format=torch.channels_last)}
    state = swag_diag.update(swag_diag.update(swag_diag.init(stored), stored), {"weight": stored["weight"] + 1})
    q = gaussian.marginal(swag_diag.gaussian(state), params)
    for part in (q.mean, q.variance):
        assert part["weight"].stride() == params["weight"].stride()
    torch.testing.assert_close(q.mean["weight"], params["weight"] + 0.5)


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank, fisher_diag])
def test_min_variance_is_a_floor_and_changes_nothing_above_it(module):
    state = collect(module, torch.randn(6, SIZE, generator=torch.Generator().manual_seed(0)))
    free = module.gaussian(state, min_variance=1e-30).variance
    half = 2 if module is swag_low_rank else 1  # of whose covariance the diagonal is one half
    floor = float(torch.cat([v.flatten() for v in free.values()]).median()) * half
    held = module.gaussian(state, min_variance=floor).variance
    for name, variance in free.items():
        assert torch.equal(held[name], variance.clamp_min(floor / half))
    assert any((variance < floor / half).any() for variance in free.values())
    assert any((variance > floor / half).any() for variance in free.values())
