% Blocks by path, each with its source and parameters; two of one path are an error, as in Simulink.
function add_block(source, path, varargin)
global model
assert(~isKey(model.blocks, path), ['there are two blocks ' path]);
model.blocks(path) = struct('source', source, 'parameters', {varargin});
end
