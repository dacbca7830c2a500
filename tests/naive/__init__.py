"""The slow plain twin of every jitted kernel in streamkernel/compute, written for reading: loops, Python numbers.

A twin has the name of its kernel and returns what the kernel fills in; it stands in the module of the same name.
"""

# ruff: noqa: F401 - tests write `naive.f`, whatever the module

from tests.naive.anchors import (
    add_to_anchors,
    anchor_weights,
    claim_rows,
    move_centers,
    nearest,
    relative_distances,
    smallest,
)
from tests.naive.arrival import arrive
from tests.naive.asinh import (
    Asinh,
    forget_asinh,
    from_asinh,
    keep_magnitude,
    magnitude_of,
    take_all_asinh,
    take_asinh,
)
from tests.naive.check import (
    admissible_step,
    check_blocks,
    check_class_margins,
    check_classes,
    check_margins,
    margin,
    roots,
)
from tests.naive.cholesky import _add_one, _add_two, _copy_tile, add_gram, add_products, factorize, solve
from tests.naive.draws import draw_blocks, draw_subsets
from tests.naive.dual_blocks import dual_steps
from tests.naive.duality import coefficients_gap, dual_start, multiply, multiply_transposed, records_gap
from tests.naive.experts import (
    count_loss,
    hedge_weights,
    predict_experts,
    replay,
    settled_heads,
    standardize_targets,
    step_temperature,
    update_heads,
)
from tests.naive.features import (
    _dot,
    _dot_pairs,
    _project_some,
    adaptive_columns,
    add_projected,
    add_scores,
    add_tile,
    column_means,
    cos_sin,
    largest_eigenvalue,
    mean_outer,
    observed,
    paired_features,
    project_columns,
)
from tests.naive.gaussians import (
    GOLDEN,
    HALF_WORD,
    WORD,
    centered,
    counted,
    feature_words,
    gaussians,
    hash64,
    mix64,
    normal,
    random_signs,
    shaped,
)
from tests.naive.hashed_rows import add_row_hashes
from tests.naive.label_pass import advance_labels, mix, pass_labels, shift
from tests.naive.laws import (
    _cosine,
    _draw,
    _gamma,
    _jensen_shannon,
    _normal,
    _sech,
    _sine,
    _tangent,
    bits,
    draws,
    exp,
    gammas,
    log,
    salted,
    signs,
    sin_half_turns,
    stream,
    uniform,
    uniforms,
)
from tests.naive.median import at_median, follow_median
from tests.naive.memory import (
    Memory,
    _weigh,
    insert_nearest,
    mean_residual,
    mean_target,
    median_residual,
    neighbors_of_label,
    neighbors_of_number,
    remember,
    search,
    squared_distances,
    vote,
)
from tests.naive.mixture_linear import learn_linear, predict_linear
from tests.naive.mixture_losses import any_known, loss_residuals
from tests.naive.mixture_parts import parts_of
from tests.naive.mixture_pass import (
    NaiveMixture,
    fill_features,
    grow_mixture,
    hedge,
    pass_mixture,
    predict_heads,
    refresh_gains,
    refresh_products,
    take_mixture_step,
)
from tests.naive.moments import (
    INPUTS,
    TARGETS,
    Moments,
    are_outliers,
    clip_rows,
    deviation,
    drawn_in,
    drawn_to,
    end_block,
    forget_block,
    is_far,
    keep,
    near,
    plain_moments,
    scale,
    scale_rows,
    standardize,
    standardize_columns,
    take_into_block,
    take_target,
    updated,
)
from tests.naive.number_pass import advance_numbers, capped_error, pass_numbers
from tests.naive.packed import pack, packed_downdate, packed_product, place, unpack
from tests.naive.posterior import _forget, _learn, _recenter, _settled, pass_posterior
from tests.naive.primal_dual import (
    _gather,
    _step_columns,
    _stop,
    advance_columns,
    advance_factorized,
    advance_rows,
    advance_sparse,
    prefetch_part,
    prefetch_record,
    prefetch_row,
)
from tests.naive.projection import (
    products,
    ridge_of,
    row_products,
    solve_records,
    subtract_batch,
    subtract_window,
    whole_tiles,
    window_products,
)
from tests.naive.proximal import elastic_net_conjugate, elastic_net_step, soft_threshold
from tests.naive.random_features import (
    add_parts,
    count_sketches,
    decays,
    homogeneous_waves,
    logs,
    multiply_spectra,
    project,
    sign_products,
    waves,
)
from tests.naive.recursive import (
    _absorb,
    _subtract,
    apply_deferred,
    dot,
    downdate,
    late_product,
    learn_least_squares,
    learn_least_squares_late,
    learn_newton,
    learn_soundly,
    move_diagonal,
    settle,
    sound_gain,
    symmetric,
    symmetric_product,
)
from tests.naive.residuals import keep_residual
from tests.naive.score_losses import score_derivatives, score_losses
from tests.naive.semi_stochastic import (
    anchor_gradient,
    derivative,
    draw_batch,
    draw_row,
    full_gradient,
    mean_loss,
    propagated,
    semi_stochastic_rounds,
    take_step,
    variance_reduced_steps,
)
from tests.naive.slopes import slopes, squared_slopes
from tests.naive.sobol import _quantile, _tail, normal_quantile, quantiles, sobol
from tests.naive.softmax import softmax_into, softmax_rows
from tests.naive.stacking import (
    beside,
    learn_labels,
    learn_numbers,
    learn_stack,
    log_ratios,
    stack_labels,
    stack_numbers,
)
from tests.naive.structured import (
    COUNTED_DEVIATION,
    _add_group,
    _draw_norms,
    _draw_signs,
    _stack_word,
    _transform,
    add_turns,
    draw_norms,
    structured_features,
    structured_scores,
)
from tests.naive.subspaces import place_below, restrict
from tests.naive.transition import Transitions, learn_transition, predict_transition
from tests.naive.trees import (
    Ensemble,
    add_to_histograms,
    best_cut,
    best_split,
    catch_up,
    draw_inputs,
    encode,
    explained,
    explains_more,
    find_cuts,
    first_of_window,
    follow,
    follow_in,
    grow,
    grow_on,
    leaf_of,
    learn_trees,
    make_leaf,
    most_work,
    n_watched,
    next_slot,
    occupied,
    partition,
    predict_trees,
    prepare,
    records_between,
    records_to_grow,
    sampling_step,
    shrink_nodes,
    sort,
    split_node,
    sum_nodes,
    take_sample,
    watch,
)
from tests.naive.window_losses import _logistic_share, dual_update, loss_conjugate, loss_derivative, loss_value
